import { readFile } from 'node:fs/promises'

const HEADER_BYTES = 32
const FRAME_HEADER_BYTES = 24
const MAGIC = 0x377f0682

/**
 * SQLite ends its recovery silently at the first frame of the write-ahead log whose checksum does not fit. That is right
 * for the last transaction, which nobody was told of; before it, acknowledged work would be missing. A transaction is
 * written only after the one before it was synced: so if two of them end after the damage, the damage is real.
 */
export async function findWalDamage(path: string): Promise<string | undefined> {
  const wal = await readWal(`${path}-wal`)
  if (wal === undefined || wal.length < HEADER_BYTES) return undefined
  const magic = wal.readUInt32BE(0)
  if (magic >>> 1 !== MAGIC >>> 1) return hasContent(wal) ? 'the header of the write-ahead log is damaged' : undefined
  const isBigEndian = (magic & 1) === 1
  const pageBytes = wal.readUInt32BE(8)
  let sums: Sums = addChecksum(wal, 0, 24, [0, 0], isBigEndian)
  if (!matches(wal, 24, sums)) return hasContent(wal) ? 'the header of the write-ahead log is damaged' : undefined

  const frameBytes = FRAME_HEADER_BYTES + pageBytes
  let damagedFrame: number | undefined
  let endings = 0
  for (let frame = 0; HEADER_BYTES + (frame + 1) * frameBytes <= wal.length; frame += 1) {
    const at = HEADER_BYTES + frame * frameBytes
    // The salts tell frames of this log from what an earlier round left in the file.
    const isOfThisLog = wal.compare(wal, 16, 24, at + 8, at + 16) === 0
    if (damagedFrame === undefined) {
      sums = addChecksum(wal, at, at + 8, sums, isBigEndian)
      sums = addChecksum(wal, at + FRAME_HEADER_BYTES, at + frameBytes, sums, isBigEndian)
      if (isOfThisLog && matches(wal, at + 16, sums)) continue
      damagedFrame = frame
    }
    if (isOfThisLog && wal.readUInt32BE(at + 4) !== 0) endings += 1
  }
  if (damagedFrame === undefined || endings < 2) return undefined
  return `frame ${damagedFrame} of the write-ahead log is damaged, and ${endings} transactions end after it`
}

type Sums = readonly [number, number]

function addChecksum(wal: Buffer, from: number, to: number, sums: Sums, isBigEndian: boolean): Sums {
  let [one, two] = sums
  for (let at = from; at < to; at += 8) {
    one = (one + (isBigEndian ? wal.readUInt32BE(at) : wal.readUInt32LE(at)) + two) >>> 0
    two = (two + (isBigEndian ? wal.readUInt32BE(at + 4) : wal.readUInt32LE(at + 4)) + one) >>> 0
  }
  return [one, two]
}

function matches(wal: Buffer, at: number, sums: Sums): boolean {
  return wal.readUInt32BE(at) === sums[0] && wal.readUInt32BE(at + 4) === sums[1]
}

function hasContent(wal: Buffer): boolean {
  return wal.length > HEADER_BYTES && wal.some((byte) => byte !== 0)
}

async function readWal(path: string): Promise<Buffer | undefined> {
  try {
    return await readFile(path)
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === 'ENOENT') return undefined
    throw error
  }
}
