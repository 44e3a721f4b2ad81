from __future__ import annotations

import http.server
import json
import threading

import openai
import pytest

from upheld.speculative.endpoints import throughput


class Server:
    """Answers with as many tokens as a prompt has letters; after the first request it waits until `together` are under way."""

    def __init__(self):
        self.together = 1
        self.under_way = self.most = 0
        self.asked = []
        lock = threading.Condition()
        outer = self

        class Handler(http.server.BaseHTTPRequestHandler):
            def do_POST(self):
                body = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
                with lock:
                    outer.asked.append(body)
                    outer.under_way += 1
                    outer.most = max(outer.most, outer.under_way)
                    lock.notify_all()
                    if len(outer.asked) > 1:
                        lock.wait_for(lambda: outer.most >= outer.together, timeout=20)
                    outer.under_way -= 1
                count = len(body["messages"][0]["content"])
                answer = {
                    "id": "1", "object": "chat.completion", "created": 0, "model": body["model"],
                    "choices": [{"index": 0, "finish_reason": "stop", "message": {"role": "assistant", "content": "x"}}],
                    "usage": {"prompt_tokens": 1, "completion_tokens": count, "total_tokens": count + 1},
                }  # fmt: skip
                data = json.dumps(answer).encode()
                self.send_response(200)
                self.send_header("Content-Type", "application/json")
                self.send_header("Content-Length", str(len(data)))
                self.end_headers()
                self.wfile.write(data)

            def log_message(self, *_):
                pass

        self.http = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self.thread = threading.Thread(target=self.http.serve_forever)
        self.thread.start()

    @property
    def url(self):
        return f"http://127.0.0.1:{self.http.server_port}/v1"

    def close(self):
        self.http.shutdown()
        self.thread.join()
        self.http.server_close()


@pytest.fixture
def server():
    made = Server()
    yield made
    made.close()


@pytest.mark.parametrize("concurrency", [1, 4])
def test_tokens_are_the_servers_and_requests_run_together(server, concurrency):
    server.together = concurrency
    found = throughput(
        server.url, "m", ["abc", "de", "f", "ghij"], concurrency=concurrency, max_tokens=7, temperature=1.0
    )
    assert found.tokens == 10
    assert found.tokens_a_second == pytest.approx(10 / found.seconds)
    assert server.most == concurrency
    assert len(server.asked) == 5  # one to warm up, which is not counted
    assert server.asked[0]["max_tokens"] == 7
    assert server.asked[0]["temperature"] == 1.0


def test_what_cannot_be_measured_is_said(server):
    with pytest.raises(ValueError, match="one prompt or more"):
        throughput(server.url, "m", [], concurrency=1)
    with pytest.raises(ValueError, match="got 1 and 0"):
        throughput(server.url, "m", ["a"], concurrency=0)


def test_a_server_that_is_not_there_is_no_measurement(server):
    server_url = server.url.replace("/v1", "/nowhere/v1")
    server.http.RequestHandlerClass.do_POST = lambda self: self.send_error(404)
    with pytest.raises(openai.OpenAIError):
        throughput(server_url, "m", ["a"], concurrency=1)
