import { failed, overLimit } from './git-error.ts'
import { type ObjectKind, objectHash } from './git-objects.ts'
import { inflate } from './inflate.ts'
import type { PackFile } from './pack-file.ts'

/** One object of a pack, by its place there. */
export interface PackEntry {
  /** Of what it is, or makes of its base. */
  kind: ObjectKind | undefined
  /** Known of a delta when it has been resolved. */
  oid: string | undefined
  /** Where its compressed bytes begin, and what they inflate to. */
  readonly data: number
  readonly size: number
  /** Index of the base of a delta. */
  base: number | undefined
  /** Deltas between it and a whole object. */
  depth: number
}

/** Which objects a pack has, and which deltas wait for which base. */
export interface PackContents {
  readonly entries: readonly PackEntry[]
  readonly waitingForEntry: Map<number, number[]>
  readonly waitingForOid: Map<string, number[]>
}

/** Bytes that may still be inflated or made of deltas. Throws when there are none left. */
export interface WorkBudget {
  spend(bytes: number): void
  /** Called often: lets others run, and throws when the work was given up. */
  breathe(): Promise<void>
}

const KINDS: readonly (ObjectKind | undefined)[] = [undefined, 'commit', 'tree', 'blob', 'tag']
const OFS_DELTA = 6
const REF_DELTA = 7
/** Type, size and base of an object. */
const MAX_HEADER = 64

/** Looks through the whole pack once: only inflating an object tells where the next one begins. Keeps none of them. */
export async function scanPack(file: PackFile, budget: WorkBudget): Promise<PackContents> {
  const entries: PackEntry[] = []
  const contents: PackContents = { entries, waitingForEntry: new Map(), waitingForOid: new Map() }
  const byOffset = new Map<number, number>()
  let at = file.objectsStart
  for (let index = 0; index < file.objectCount; index++) {
    await budget.breathe()
    const header = readHeader(file.read(at, MAX_HEADER))
    const { type, size } = header
    budget.spend(size)
    const kind = KINDS[type]
    const hash = kind && objectHash(kind, size)
    const entry: PackEntry = { kind, oid: undefined, data: at + header.length, size, base: undefined, depth: 0 }
    byOffset.set(at, index)
    entries.push(entry)
    if (type === OFS_DELTA) {
      const base = byOffset.get(at - header.baseDistance)
      if (base === undefined || base === index) throw failed('a delta of the pack has a base that is no object')
      add(contents.waitingForEntry, base, index)
    }
    if (type === REF_DELTA) add(contents.waitingForOid, header.baseOid, index)
    const read = (position: number, length: number) => file.read(position, length)
    const taken = await inflate({ read, position: entry.data, end: file.objectsEnd, size }, (chunk) => void hash?.update(chunk))
    entry.oid = hash?.digest('hex')
    at = entry.data + taken
  }
  if (at !== file.objectsEnd) throw failed('the pack has something behind its last object')
  return contents
}

interface Header {
  readonly type: number
  readonly size: number
  readonly length: number
  readonly baseDistance: number
  readonly baseOid: string
}

function readHeader(data: Buffer): Header {
  let length = 0
  const next = (): number => {
    const byte = data[length++]
    if (byte === undefined) throw failed('the pack ends in the middle of an object')
    return byte
  }
  let byte = next()
  const type = (byte >> 4) & 7
  let size = byte & 0x0f
  for (let shift = 4; byte >= 0x80; shift += 7) {
    byte = next()
    if (shift > 45) throw overLimit('an object of the pack has a size beyond all bounds')
    size += (byte & 0x7f) * 2 ** shift
  }
  let baseDistance = 0
  if (type === OFS_DELTA) {
    byte = next()
    baseDistance = byte & 0x7f
    while (byte >= 0x80) {
      byte = next()
      baseDistance = (baseDistance + 1) * 128 + (byte & 0x7f)
      if (baseDistance > Number.MAX_SAFE_INTEGER / 256) throw failed('a delta of the pack has a base that is no object')
    }
  }
  const oidStart = length
  if (type === REF_DELTA) length += 20
  if (length > data.length) throw failed('the pack ends in the middle of an object')
  if (KINDS[type] === undefined && type !== OFS_DELTA && type !== REF_DELTA)
    throw failed(`the pack has an object of an unknown type (${type})`)
  return { type, size, length, baseDistance, baseOid: data.toString('hex', oidStart, length) }
}

function add<K>(waiting: Map<K, number[]>, base: K, index: number): void {
  const list = waiting.get(base)
  if (list === undefined) waiting.set(base, [index])
  else list.push(index)
}
