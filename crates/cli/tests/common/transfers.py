"""Many transfers at once: `serve PORT FILE` sends the file to whoever connects; `fetch HOST PORT COUNT FILE SECONDS`
says how that many of them end, as JSON: whole, wrong, reset, or hanging."""

import hashlib, json, socket, sys, threading


def serve(port, name):
    listener = socket.create_server(("::", port), family=socket.AF_INET6, dualstack_ipv6=True, backlog=1024)

    def send(connection):
        try:
            with connection, open(name, "rb") as file:
                connection.sendfile(file)
        except OSError:
            pass

    while True:
        connection, _ = listener.accept()
        threading.Thread(target=send, args=(connection,), daemon=True).start()


def fetch(host, port, count, name, seconds):
    wanted = hashlib.sha256(open(name, "rb").read()).digest()
    ends, lock = {"whole": 0, "wrong": 0, "reset": 0, "hanging": 0}, threading.Lock()

    def receive():
        digest = hashlib.sha256()
        try:
            with socket.create_connection((host, port), timeout=seconds) as connection:
                while part := connection.recv(1 << 16):
                    digest.update(part)
            end = "whole" if digest.digest() == wanted else "wrong"
        except TimeoutError:
            end = "hanging"
        except OSError:
            end = "reset"
        with lock:
            ends[end] += 1

    threads = [threading.Thread(target=receive, daemon=True) for _ in range(count)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    print(json.dumps(ends))


if sys.argv[1] == "serve":
    serve(int(sys.argv[2]), sys.argv[3])
else:
    fetch(sys.argv[2], int(sys.argv[3]), int(sys.argv[4]), sys.argv[5], float(sys.argv[6]))
