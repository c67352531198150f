import { applyDelta, deltaSizes } from './delta.ts'
import { overLimit } from './git-error.ts'
import { type ObjectKind, objectHash } from './git-objects.ts'
import { inflate } from './inflate.ts'
import type { PackFile } from './pack-file.ts'
import { type PackContents, type PackEntry, scanPack, type WorkBudget } from './pack-scan.ts'

export interface PackOptions {
  readonly budget: WorkBudget
  /** Of one object that is held in memory. */
  readonly maxObjectBytes: number
}

/** Larger than may be held, or made of something that is. */
export const TOO_LARGE = 'too large'

/** Limit that `git repack` itself never exceeds. */
const MAX_DEPTH = 4_095
const CACHE_BYTES = 32 * 1024 * 1024
/** Of commits, tags and folders, which are never this large. */
const MAX_STRUCTURE_BYTES = 32 * 1024 * 1024

/**
 * The objects of a pack by their hash. An object is found under the hash of what it is, never under a claimed one, so a reader that
 * starts at a hash and follows the hashes in objects has checked everything on the way.
 */
export class Pack {
  readonly #file: PackFile
  readonly #contents: PackContents
  readonly #options: PackOptions
  readonly #byOid = new Map<string, number>()
  readonly #deltas = new Map<ObjectKind, AsyncGenerator<void>>()
  readonly #cache = new ContentCache(CACHE_BYTES)
  /** Objects too large to be held; what is missing may be one of them. */
  #skipped = 0

  static async open(file: PackFile, options: PackOptions): Promise<Pack> {
    return new Pack(file, await scanPack(file, options.budget), options)
  }

  private constructor(file: PackFile, contents: PackContents, options: PackOptions) {
    this.#file = file
    this.#contents = contents
    this.#options = options
    for (const [index, { oid }] of contents.entries.entries()) if (oid !== undefined) this.#byOid.set(oid, index)
  }

  async has(oid: string, kind: ObjectKind): Promise<boolean> {
    return (await this.#locate(oid, kind)) !== undefined
  }

  /** undefined: the pack does not have it, or not as this kind. */
  async read(oid: string, kind: ObjectKind): Promise<Buffer | typeof TOO_LARGE | undefined> {
    const index = await this.#locate(oid, kind)
    if (index === undefined) return this.#skipped > 0 ? TOO_LARGE : undefined
    if (this.#entry(index).kind !== kind) return undefined
    return (await this.#content(index)) ?? TOO_LARGE
  }

  /** Deltas get their hashes only when they are resolved: as many as it takes, and only those of the kind. */
  async #locate(oid: string, kind: ObjectKind): Promise<number | undefined> {
    let deltas = this.#deltas.get(kind)
    if (deltas === undefined) {
      deltas = this.#resolve(kind)
      this.#deltas.set(kind, deltas)
    }
    while (!this.#byOid.has(oid)) if ((await deltas.next()).done) break
    return this.#byOid.get(oid)
  }

  /** From the whole objects towards the ends of their chains. A delta whose base is not in the pack is never reached. */
  async *#resolve(kind: ObjectKind): AsyncGenerator<void> {
    const { entries, waitingForEntry, waitingForOid } = this.#contents
    const open = entries.flatMap((entry, index) => (entry.kind === kind ? [index] : [])).reverse()
    for (let index = open.pop(); index !== undefined; index = open.pop()) {
      const { oid = '', depth } = this.#entry(index)
      for (const child of [...(waitingForEntry.get(index) ?? []), ...(waitingForOid.get(oid) ?? [])]) {
        const entry = this.#entry(child)
        if (depth >= MAX_DEPTH) throw overLimit(`the pack has a chain of more than ${MAX_DEPTH} deltas`)
        entry.base = index
        entry.depth = depth + 1
        entry.kind = kind
        const content = await this.#content(child)
        if (content === undefined) {
          this.#skipped++
          continue
        }
        entry.oid = objectHash(kind, content.length).update(content).digest('hex')
        if (!this.#byOid.has(entry.oid)) this.#byOid.set(entry.oid, child)
        open.push(child)
        yield
      }
      waitingForOid.delete(oid) // a second object of the same hash must not resolve them again
    }
  }

  /** undefined: it, or what it is made of, is too large. */
  async #content(index: number): Promise<Buffer | undefined> {
    const chain: number[] = []
    let at = index
    let content = this.#cache.get(at)
    while (content === undefined) {
      const { base } = this.#entry(at)
      if (base === undefined) break
      chain.push(at)
      at = base
      content = this.#cache.get(at)
    }
    content ??= await this.#inflate(at)
    for (const step of chain.reverse()) {
      const delta = await this.#inflate(step)
      if (content === undefined || delta === undefined) return undefined
      const { result } = deltaSizes(delta)
      if (result > this.#maxBytes(this.#entry(step))) return undefined
      this.#options.budget.spend(result)
      content = applyDelta(content, delta)
      this.#cache.set(step, content)
    }
    return content
  }

  async #inflate(index: number): Promise<Buffer | undefined> {
    const { budget } = this.#options
    const entry = this.#entry(index)
    const { data, size } = entry
    if (size > this.#maxBytes(entry)) return undefined
    await budget.breathe()
    budget.spend(size)
    const content = Buffer.allocUnsafe(size)
    let filled = 0
    const read = (position: number, length: number) => this.#file.read(position, length)
    await inflate({ read, position: data, end: this.#file.objectsEnd, size }, (chunk) => {
      filled += chunk.copy(content, filled)
    })
    if (entry.base === undefined) this.#cache.set(index, content)
    return content
  }

  #entry(index: number): PackEntry {
    const entry = this.#contents.entries[index]
    if (entry === undefined) throw new RangeError(`the pack has no object ${index}`)
    return entry
  }

  #maxBytes({ kind }: PackEntry): number {
    const { maxObjectBytes } = this.#options
    return kind === 'blob' ? maxObjectBytes : Math.min(maxObjectBytes, MAX_STRUCTURE_BYTES)
  }
}

/** The contents used last, up to a number of bytes; at least one. */
class ContentCache {
  readonly #maxBytes: number
  readonly #contents = new Map<number, Buffer>()
  #bytes = 0

  constructor(maxBytes: number) {
    this.#maxBytes = maxBytes
  }

  get(index: number): Buffer | undefined {
    const content = this.#contents.get(index)
    if (content !== undefined) {
      this.#contents.delete(index)
      this.#contents.set(index, content)
    }
    return content
  }

  set(index: number, content: Buffer): void {
    if (this.#contents.has(index)) return
    this.#contents.set(index, content)
    this.#bytes += content.length
    for (const [oldest, { length }] of this.#contents) {
      if (this.#bytes <= this.#maxBytes || this.#contents.size === 1) break
      this.#contents.delete(oldest)
      this.#bytes -= length
    }
  }
}
