import { createHash, type Hash } from 'node:crypto'
import { type FileHandle, open, stat } from 'node:fs/promises'

/** One entry of a tar file. Owner is root and the time is the epoch for all of them, so the same entries give the same bytes. */
export interface TarEntry {
  /** Relative, with slashes. */
  readonly path: string
  /** 0o755 for folders, 0o644 for files when absent. */
  readonly mode?: number
  readonly uid?: number
  readonly gid?: number
  readonly content: TarContent
}

export type TarContent =
  | { readonly kind: 'folder' }
  | { readonly kind: 'link'; readonly target: string }
  | { readonly kind: 'bytes'; readonly bytes: string | Uint8Array }
  /** A file of this machine, read while writing. */
  | { readonly kind: 'file'; readonly source: string }

export interface WrittenTar {
  readonly sha256: string
  readonly size: number
}

const blockSize = 512
const chunkSize = 1 << 20
const typeFlags = { folder: '5', link: '2', bytes: '0', file: '0' } as const

/** Sorted by path, each folder before what is in it; missing parent folders are added. POSIX ustar, read by everything. */
export async function writeTar(output: string, entries: readonly TarEntry[]): Promise<WrittenTar> {
  const file = await open(output, 'w')
  const sink: Sink = { file, hash: createHash('sha256'), size: 0 }
  try {
    for (const entry of withFolders(entries)) await writeEntry(sink, entry)
    await put(sink, Buffer.alloc(2 * blockSize))
  } finally {
    await file.close()
  }
  return { sha256: sink.hash.digest('hex'), size: sink.size }
}

interface Sink {
  readonly file: FileHandle
  readonly hash: Hash
  size: number
}

async function writeEntry(sink: Sink, entry: TarEntry): Promise<void> {
  const { content } = entry
  if (content.kind === 'bytes') {
    const bytes = Buffer.from(content.bytes)
    await put(sink, header(entry, bytes.length))
    await put(sink, bytes)
    await pad(sink, bytes.length)
  } else if (content.kind === 'file') {
    const { size } = await stat(content.source)
    await put(sink, header(entry, size))
    await copy(sink, content.source, size)
    await pad(sink, size)
  } else await put(sink, header(entry, 0))
}

async function copy(sink: Sink, source: string, size: number): Promise<void> {
  const input = await open(source, 'r')
  const chunk = Buffer.alloc(chunkSize)
  let left = size
  try {
    while (left > 0) {
      const { bytesRead } = await input.read(chunk, 0, Math.min(chunk.length, left))
      if (bytesRead === 0) throw new Error(`${source} became shorter while it was read`)
      await put(sink, chunk.subarray(0, bytesRead))
      left -= bytesRead
    }
  } finally {
    await input.close()
  }
}

async function put(sink: Sink, bytes: Uint8Array): Promise<void> {
  sink.hash.update(bytes)
  await sink.file.writeFile(bytes)
  sink.size += bytes.length
}

async function pad(sink: Sink, size: number): Promise<void> {
  const rest = size % blockSize
  if (rest > 0) await put(sink, Buffer.alloc(blockSize - rest))
}

function header(entry: TarEntry, size: number): Buffer {
  const { content } = entry
  const folder = content.kind === 'folder'
  const block = Buffer.alloc(blockSize)
  const { name, prefix } = splitPath(folder ? `${entry.path}/` : entry.path)
  const octal = (value: number, offset: number, length: number) => block.write(`${value.toString(8).padStart(length - 1, '0')}\0`, offset)
  block.write(name, 0)
  octal(entry.mode ?? (folder ? 0o755 : 0o644), 100, 8)
  octal(entry.uid ?? 0, 108, 8)
  octal(entry.gid ?? 0, 116, 8)
  octal(size, 124, 12)
  octal(0, 136, 12)
  block.write(typeFlags[content.kind], 156)
  if (content.kind === 'link') {
    if (Buffer.byteLength(content.target) > 100) throw new Error(`too long for a tar file: link to ${content.target}`)
    block.write(content.target, 157)
  }
  block.write('ustar\0' + '00', 257)
  block.write(prefix, 345)
  // The sum is taken with its own field full of blanks.
  block.fill(' ', 148, 156)
  const sum = block.reduce((total, byte) => total + byte, 0)
  block.write(`${sum.toString(8).padStart(6, '0')}\0 `, 148)
  return block
}

/** ustar has 100 bytes for the end of a path and 155 for its beginning. */
function splitPath(path: string): { name: string; prefix: string } {
  if (Buffer.byteLength(path) <= 100) return { name: path, prefix: '' }
  for (let slash = path.indexOf('/'); slash > 0 && slash < path.length - 1; slash = path.indexOf('/', slash + 1)) {
    const [prefix, name] = [path.slice(0, slash), path.slice(slash + 1)]
    if (Buffer.byteLength(prefix) <= 155 && Buffer.byteLength(name) <= 100) return { name, prefix }
  }
  throw new Error(`too long for a tar file: ${path}`)
}

function withFolders(entries: readonly TarEntry[]): TarEntry[] {
  const all = new Map<string, TarEntry>()
  for (const entry of entries) {
    if (entry.path.startsWith('/') || entry.path.split('/').some((part) => ['', '.', '..'].includes(part)))
      throw new Error(`not a plain relative path: "${entry.path}"`)
    if (all.has(entry.path)) throw new Error(`twice in one tar file: ${entry.path}`)
    all.set(entry.path, entry)
  }
  for (const { path } of entries) {
    const parts = path.split('/')
    for (let depth = 1; depth < parts.length; depth++) {
      const folder = parts.slice(0, depth).join('/')
      if (!all.has(folder)) all.set(folder, { path: folder, content: { kind: 'folder' } })
    }
  }
  return [...all.values()].sort((a, b) => (a.path < b.path ? -1 : 1))
}
