"""Reads a receipt with a model. Skynet runs this on each case and measures how long it takes and what it costs."""

import json
import os
import urllib.error
import urllib.request

MODEL = "gpt-4o-mini"


def run(artifact, input):
    """What the model reads in the receipt: its answer as text. `artifact` is the prompt that an optimizer improves."""
    messages = [{"role": "system", "content": artifact}, {"role": "user", "content": input["receipt"]}]
    return ask({"model": MODEL, "temperature": 0, "messages": messages})


def ask(request):
    # Both are set for this one run: the gateway's address, and a token under which its calls are metered. So they are
    # read here, and not while the file is loaded. `openai.OpenAI()`, made in here, would read them by itself.
    url = os.environ["OPENAI_BASE_URL"] + "/chat/completions"
    headers = {"authorization": "Bearer " + os.environ["OPENAI_API_KEY"], "content-type": "application/json"}
    try:
        with urllib.request.urlopen(urllib.request.Request(url, json.dumps(request).encode(), headers)) as response:
            return json.load(response)["choices"][0]["message"]["content"]
    except urllib.error.HTTPError as error:
        raise RuntimeError(f"the model answered HTTP {error.code}: {error.read().decode()[:300]}") from None
