import { execFile } from 'node:child_process'
import { mkdir, mkdtemp, rm, truncate, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { promisify } from 'node:util'
import { onTestFinished, type TestContext } from 'vitest'

const run = promisify(execFile)

export interface PowerCutRig {
  /** A directory on a file system of its own, inside an image. */
  readonly directory: string
  /** What a machine would find there if its power failed now: whatever was not synced is lost. */
  cut(): Promise<string>
}

/**
 * A file system inside an image, whose image can be cloned in one step while a writer runs. The clone has what reached
 * the disk and nothing of the page cache, as after a power cut. Needs root, loop devices, xfsprogs (mkfs.xfs) and, for
 * `ext4`, e2fsprogs. Where these are missing the test is skipped with the reason, except with TIDEMARK_CI=1, where it
 * fails.
 */
export async function openPowerCutRig(context: TestContext, kind: 'xfs' | 'ext4' = 'xfs'): Promise<PowerCutRig> {
  const root = await mkdtemp(join(tmpdir(), 'tidemark-power-'))
  const mounted: string[] = []
  onTestFinished(async () => {
    // In reverse: the inner image lies on the outer file system.
    for (const point of mounted.reverse()) await run('umount', [point])
    await rm(root, { recursive: true, force: true })
  })
  const mount = async (image: string, name: string, options = 'loop') => {
    const point = join(root, name)
    await mkdir(point)
    await run('mount', ['-o', options, image, point])
    return point
  }
  try {
    const outer = join(root, 'outer.img')
    await writeFile(outer, '')
    await truncate(outer, 2 * 1024 ** 3)
    await run('mkfs.xfs', ['-q', '-m', 'reflink=1', outer])
    const outerDirectory = await mount(outer, 'outer')
    mounted.push(outerDirectory)
    const inner = join(outerDirectory, 'inner.img')
    await writeFile(inner, '')
    await truncate(inner, 320 * 1024 ** 2)
    if (kind === 'xfs') await run('mkfs.xfs', ['-q', inner])
    else await run('mkfs.ext4', ['-q', '-F', inner])
    const directory = await mount(inner, 'inner')
    mounted.push(directory)
    let cuts = 0
    return {
      directory,
      async cut() {
        const clone = join(outerDirectory, `clone-${++cuts}.img`)
        await run('cp', ['--reflink=always', inner, clone])
        // Mounting replays the file system's own journal. What is found is copied out, so that nothing that a reader
        // leaves open keeps the clone mounted.
        const point = await mount(clone, `clone-${cuts}`, kind === 'xfs' ? 'loop,nouuid' : 'loop')
        const found = join(root, `after-cut-${cuts}`)
        await run('cp', ['-a', point, found])
        await run('umount', [point])
        await rm(clone)
        return found
      },
    }
  } catch (error) {
    if (process.env['TIDEMARK_CI'] === '1') throw error
    const reason = error instanceof Error ? (error.message.split('\n')[0] ?? '') : String(error)
    return context.skip(`power cuts need root, loop devices, xfsprogs and e2fsprogs: ${reason}`)
  }
}
