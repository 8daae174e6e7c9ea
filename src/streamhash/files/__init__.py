"""Files of features, labels and items."""
