"""What tests of collections share."""

import subprocess
import sys
import textwrap

import pytest


@pytest.fixture(scope="session")
def bucket():
    """The options of a bucket of a real server of S3's protocol, in a process of its own."""
    pytest.importorskip("moto.server", reason="an S3 server is not installed: moto[server]")
    import http.client

    code = """
        import sys
        from werkzeug.serving import make_server
        from moto.server import DomainDispatcherApplication, create_backend_app
        app = DomainDispatcherApplication(create_backend_app)
        server = make_server("127.0.0.1", 0, app, threaded=True)
        print(server.port, flush=True)
        server.serve_forever()
    """
    command = [sys.executable, "-c", textwrap.dedent(code)]
    server = subprocess.Popen(command, stdout=subprocess.PIPE, text=True)
    try:
        port = int(server.stdout.readline())
        connection = http.client.HTTPConnection("127.0.0.1", port)
        connection.request("PUT", "/bucket")
        assert connection.getresponse().status == 200
        yield {
            "aws_endpoint": f"http://127.0.0.1:{port}",
            "allow_http": "true",
            "aws_access_key_id": "a",
            "aws_secret_access_key": "b",
            "aws_region": "us-east-1",
        }
    finally:
        server.kill()
        server.communicate()
