/** A door that a test opens: `passed` resolves when `open` is called. */
export function gate(): { readonly passed: Promise<void>; readonly open: () => void } {
  let open = (): void => undefined
  const passed = new Promise<void>((resolve) => (open = resolve))
  return { passed, open }
}

/** Lets everything that is ready run, real file I/O included, until the condition holds. */
export async function until(condition: () => boolean, what: string): Promise<void> {
  for (let turn = 0; turn < 20_000; turn++) {
    if (condition()) return
    await new Promise((resolve) => setImmediate(resolve))
  }
  throw new Error(`waited in vain for: ${what}`)
}

/** A few turns of the event loop: what could happen without waiting for anything has happened. */
export async function turnsOfTheLoop(): Promise<void> {
  for (let turn = 0; turn < 5; turn++) await new Promise((resolve) => setImmediate(resolve))
}
