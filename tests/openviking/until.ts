/** A bounded wait for something the double does behind the answer. */
export async function until(what: string, holds: () => boolean | Promise<boolean>): Promise<void> {
  const deadline = Date.now() + 20_000
  while (!(await holds())) {
    if (Date.now() > deadline) throw new Error(`Waited 20 s in vain until ${what}`)
    await new Promise((resolve) => setTimeout(resolve, 2))
  }
}
