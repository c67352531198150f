import { createHash } from 'node:crypto'
import { deflateSync } from 'node:zlib'
import { type ObjectKind, objectHash } from '../git-objects.ts'

const TYPES = { commit: 1, tree: 2, blob: 3, tag: 4, 'ofs-delta': 6, 'ref-delta': 7 } as const

export interface BuiltObject {
  readonly type: keyof typeof TYPES
  readonly content: Buffer
  /** Index of the object that an ofs-delta is made of. */
  readonly base?: number
  readonly baseOid?: string
  /** Value in its header, if not the true one. */
  readonly size?: number
  /** Instead of its compressed content. */
  readonly raw?: Buffer
  /** Instead of the distance to `base`. */
  readonly distance?: number
}

export interface PackFaults {
  readonly count?: number
  readonly behind?: Buffer
  readonly version?: number
}

/** A pack with the given content and the matching checksum. */
export function buildPack(objects: readonly BuiltObject[], faults: PackFaults = {}): Buffer {
  const head = Buffer.from('PACK\0\0\0\0\0\0\0\0', 'latin1')
  head.writeUInt32BE(faults.version ?? 2, 4)
  head.writeUInt32BE(faults.count ?? objects.length, 8)
  const pieces = [head]
  const offsets: number[] = []
  let at = head.length
  for (const { type, content, base, baseOid, size, raw, distance } of objects) {
    const parts = [objectHeader(TYPES[type], size ?? content.length)]
    if (type === 'ofs-delta') parts.push(distanceBytes(distance ?? at - (offsets[base ?? 0] ?? 0)))
    if (type === 'ref-delta') parts.push(Buffer.from(baseOid ?? '', 'hex'))
    parts.push(raw ?? deflateSync(content))
    const piece = Buffer.concat(parts)
    offsets.push(at)
    at += piece.length
    pieces.push(piece)
  }
  return withChecksum(Buffer.concat([...pieces, ...(faults.behind ? [faults.behind] : [])]))
}

export function withChecksum(data: Buffer): Buffer {
  return Buffer.concat([data, createHash('sha1').update(data).digest()])
}

export function oidOf(kind: ObjectKind, content: Buffer): string {
  return objectHash(kind, content.length).update(content).digest('hex')
}

/** A delta that copies the first bytes of a base and adds something. */
export function deltaOf(base: Buffer, copied: number, added: Buffer): Buffer {
  const parts = [sizeBytes(base.length), sizeBytes(copied + added.length)]
  for (let at = 0; at < copied; at += 0x10000) {
    const length = Math.min(0x10000, copied - at)
    const op = Buffer.from([
      0x80 | 0x0f | 0x30,
      at & 0xff,
      (at >> 8) & 0xff,
      (at >> 16) & 0xff,
      at >>> 24,
      length & 0xff,
      (length >> 8) & 0xff,
    ])
    parts.push(op)
  }
  for (let at = 0; at < added.length; at += 127) {
    const piece = added.subarray(at, at + 127)
    parts.push(Buffer.from([piece.length]), piece)
  }
  return Buffer.concat(parts)
}

export interface BuiltCommit {
  readonly oid: string
  readonly objects: readonly BuiltObject[]
}

/** A commit with these files at its root; a mode goes before the name of what is no plain file: `120000 link`. */
export function buildCommit(files: Readonly<Record<string, Buffer | string>>): BuiltCommit {
  const objects: BuiltObject[] = []
  const add = (kind: ObjectKind, content: Buffer): string => {
    objects.push({ type: kind, content })
    return oidOf(kind, content)
  }
  const tree = Object.entries(files).map(([name, content]) => {
    const oid = add('blob', Buffer.from(content))
    return Buffer.concat([Buffer.from(/^\d+ /.test(name) ? `${name}\0` : `100644 ${name}\0`), Buffer.from(oid, 'hex')])
  })
  const root = add('tree', Buffer.concat(tree))
  const person = 'T <t@example.com> 1760000000 +0000'
  return { oid: add('commit', Buffer.from(`tree ${root}\nauthor ${person}\ncommitter ${person}\n\nx\n`)), objects }
}

function objectHeader(type: number, size: number): Buffer {
  const bytes = [(type << 4) | (size & 0x0f)]
  for (let left = Math.floor(size / 16); left > 0; left = Math.floor(left / 128)) {
    bytes.push((bytes.pop() ?? 0) | 0x80)
    bytes.push(left % 128)
  }
  return Buffer.from(bytes)
}

function distanceBytes(distance: number): Buffer {
  const bytes = [distance & 0x7f]
  for (let left = Math.floor(distance / 128); left > 0; left = Math.floor(left / 128)) bytes.unshift(0x80 | (--left % 128))
  return Buffer.from(bytes)
}

function sizeBytes(size: number): Buffer {
  const bytes = [size % 128]
  for (let left = Math.floor(size / 128); left > 0; left = Math.floor(left / 128)) {
    bytes.push((bytes.pop() ?? 0) | 0x80)
    bytes.push(left % 128)
  }
  return Buffer.from(bytes)
}
