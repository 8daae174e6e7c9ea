"""What is shown of result rows: tables, figures and one page, beside the papers' numbers."""
