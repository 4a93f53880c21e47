/**
 * Runs something under a signal that follows several others, and lets go of them afterwards. `AbortSignal.any` would
 * hang one dependent a request on signals that live as long as the process.
 */
export async function underSignals<T>(
  sources: readonly (AbortSignal | undefined)[],
  run: (signal: AbortSignal) => Promise<T>,
): Promise<T> {
  const controller = new AbortController()
  const abort = (): void => controller.abort()
  for (const source of sources) {
    if (source?.aborted === true) abort()
    source?.addEventListener('abort', abort, { once: true })
  }
  try {
    return await run(controller.signal)
  } finally {
    for (const source of sources) source?.removeEventListener('abort', abort)
  }
}
