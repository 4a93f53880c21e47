import { spawnSync } from 'node:child_process'

/**
 * Some tests need more than Node: a compiler, file systems, root. Without it they are skipped, with a message; on CI a
 * missing tool is a failure, because there nobody would read the message.
 */
export function missingTool(needs: { readonly root?: boolean; readonly commands?: readonly string[] }): string | false {
  const missing: string[] = []
  if (process.platform !== 'linux') missing.push('Linux')
  if (needs.root === true && process.getuid?.() !== 0) missing.push('root')
  for (const command of needs.commands ?? []) {
    if (spawnSync('sh', ['-c', `command -v ${command}`]).status !== 0) missing.push(command)
  }
  if (missing.length === 0) return false
  const message = `this machine lacks ${missing.join(', ')}`
  if (process.env['TIDEMARK_CI'] === '1') throw new Error(`On CI nothing may be skipped, but ${message}.`)
  process.stderr.write(`skipped: ${message}\n`)
  return message
}
