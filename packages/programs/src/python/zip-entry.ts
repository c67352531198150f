import { promisify } from 'node:util'
import { inflateRaw } from 'node:zlib'
import { ThvError } from '@thv/kernel/errors'

const END = 0x06054b50
const ENTRY = 0x02014b50
const END_BYTES = 22
const MAX_COMMENT = 0xffff
const STORED = 0
const DEFLATED = 8

/**
 * One file of a ZIP archive (PKWARE APPNOTE 6.3, without ZIP64 and encryption), which is what a wheel is. Throws
 * `package_install_failed` when it is not there, damaged or larger than the limit.
 */
export async function readZipEntry(zip: Buffer, name: string, limit: number): Promise<Buffer> {
  try {
    const entry = findEntry(zip, name)
    if (entry === undefined) throw new ThvError('package_install_failed', `the archive has no file ${name}`)
    const { method, offset, compressed, size } = entry
    if (size > limit) throw new ThvError('package_install_failed', `${name} in the archive is larger than ${limit} bytes`)
    // The local header repeats the name and may have other extra fields than the directory.
    const start = offset + 30 + zip.readUInt16LE(offset + 26) + zip.readUInt16LE(offset + 28)
    const data = zip.subarray(start, start + compressed)
    if (method === STORED) return data
    if (method === DEFLATED) return await promisify(inflateRaw)(data, { maxOutputLength: limit })
    throw new ThvError('package_install_failed', `${name} in the archive uses compression method ${method}, which is not supported`)
  } catch (cause) {
    if (cause instanceof ThvError) throw cause
    throw new ThvError('package_install_failed', 'the archive is damaged', { cause })
  }
}

interface ZipEntry {
  readonly method: number
  readonly compressed: number
  readonly size: number
  readonly offset: number
}

function findEntry(zip: Buffer, wanted: string): ZipEntry | undefined {
  const end = endOf(zip)
  const count = zip.readUInt16LE(end + 10)
  let at = zip.readUInt32LE(end + 16)
  for (let index = 0; index < count; index++) {
    if (zip.readUInt32LE(at) !== ENTRY) throw new Error(`no directory entry at ${at}`)
    const [nameLength, extraLength, commentLength] = [zip.readUInt16LE(at + 28), zip.readUInt16LE(at + 30), zip.readUInt16LE(at + 32)]
    if (zip.toString('utf8', at + 46, at + 46 + nameLength) === wanted)
      return {
        method: zip.readUInt16LE(at + 10),
        compressed: zip.readUInt32LE(at + 20),
        size: zip.readUInt32LE(at + 24),
        offset: zip.readUInt32LE(at + 42),
      }
    at += 46 + nameLength + extraLength + commentLength
  }
  return undefined
}

/** The end of the directory stands at the end of the file, before a comment of any length. */
function endOf(zip: Buffer): number {
  for (let at = zip.length - END_BYTES; at >= Math.max(0, zip.length - END_BYTES - MAX_COMMENT); at--)
    if (zip.readUInt32LE(at) === END) return at
  throw new Error('no directory')
}
