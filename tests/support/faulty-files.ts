import { openLogFile, type LogFile, type OpenLogFile } from '../../src/log/files.js'

export type Fault = (call: keyof LogFile, count: number) => Error | 'short' | undefined

/** Real files, whose calls are recorded and can be made to fail. */
export function faultyFiles(fault: Fault): { openFile: OpenLogFile; calls: (keyof LogFile)[] } {
  const calls: (keyof LogFile)[] = []
  const check = (call: keyof LogFile) => {
    calls.push(call)
    const outcome = fault(call, calls.filter((name) => name === call).length)
    if (outcome instanceof Error) throw outcome
    return outcome
  }
  const openFile: OpenLogFile = async (path, flags) => {
    const file = await openLogFile(path, flags)
    return {
      async write(bytes, from, length, position) {
        const take = check('write') === 'short' ? Math.ceil(length / 2) : length
        return file.write(bytes, from, take, position)
      },
      async datasync() {
        check('datasync')
        await file.datasync()
      },
      async truncate(size) {
        check('truncate')
        await file.truncate(size)
      },
      close: () => file.close(),
    }
  }
  return { openFile, calls }
}

export const diskError = (code: string): Error => Object.assign(new Error(`${code}: the disk failed`), { code })
