"""What our engine asks of vLLM's worker processes beyond vLLM's own calls.

vLLM mixes this class into its worker, by the name in `vllm_llm`; it is not used anywhere else.
"""

from typing import Any


class WorkerExtension:
    model_runner: Any

    def refresh_head(self) -> None:
        """Make the output head compute from the weights that were just loaded.

        A head that is tied to the embedding has no weights of its own in a document, so vLLM's
        reload passes over it. On a CPU it multiplies with a packed copy, made once at the
        start: without this, new versions would answer through the old head.
        """
        from vllm.model_executor.layers.vocab_parallel_embedding import ParallelLMHead

        for module in self.model_runner.get_model().modules():
            if isinstance(module, ParallelLMHead):
                module.quant_method.process_weights_after_loading(module)
