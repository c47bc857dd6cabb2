# An organization's events with httpx-sse, each once: python events_example.py <url> <key>
import json
import sys
import time

import httpx
from httpx_sse import connect_sse

url, api_key = sys.argv[1:]
headers = {"Authorization": f"Bearer {api_key}"}
# A heartbeat, which is no event, comes every 15 s.
with httpx.Client(timeout=httpx.Timeout(10, read=45)) as client:
    while True:
        try:
            with connect_sse(client, "GET", f"{url}/api/events", headers=headers) as stream:
                stream.response.raise_for_status()
                # Where the stream begins, for a connection that is lost before its first event.
                headers["Last-Event-ID"] = stream.response.headers["Last-Event-ID"]
                print("from behind", headers["Last-Event-ID"], flush=True)
                for sse in stream.iter_sse():
                    headers["Last-Event-ID"] = sse.id
                    event = json.loads(sse.data)
                    if sse.event == "end":  # the service ends the stream, and says why
                        print(event["message"], flush=True)
                    else:
                        print(sse.event, event["subject"], flush=True)
        except httpx.TransportError as error:
            print(type(error).__name__, flush=True)
        time.sleep(1)
