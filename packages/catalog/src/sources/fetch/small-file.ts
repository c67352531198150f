import { constants } from 'node:fs'
import { open } from 'node:fs/promises'
import { ThvError } from '@thv/kernel/errors'

export interface SmallFile {
  readonly path: string
  /** Its purpose, for messages, which never contain its content. */
  readonly label: string
}

const MAX_BYTES = 65_536

/** A file that an operator has written, such as a secret; never a pipe or a device, which could keep us waiting or never end. */
export async function readSmallFile({ path, label }: SmallFile): Promise<Buffer> {
  try {
    await using file = await open(path, constants.O_RDONLY | constants.O_NONBLOCK | constants.O_NOCTTY)
    if (!(await file.stat()).isFile()) throw new ThvError('source_failed', `${label} ${path} is not a regular file`)
    const buffer = Buffer.alloc(MAX_BYTES + 1)
    const { bytesRead } = await file.read(buffer, 0, buffer.length, 0)
    if (bytesRead > MAX_BYTES) throw new ThvError('source_limit', `${label} ${path} is larger than ${MAX_BYTES} bytes`)
    return buffer.subarray(0, bytesRead)
  } catch (error) {
    if (error instanceof ThvError) throw error
    const code = error instanceof Error && 'code' in error ? ` (${String(error.code)})` : ''
    throw new ThvError('source_failed', `${label} ${path} cannot be read${code}`)
  }
}
