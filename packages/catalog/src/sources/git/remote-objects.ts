import { failed, overLimit } from './git-error.ts'
import { type ObjectKind, parseCommit, parseTag } from './git-objects.ts'
import { type FetchWish, type GitRemote, RefusedByServer } from './git-remote.ts'
import { Pack, type PackOptions, TOO_LARGE } from './pack.ts'
import { PackFile, type PackFileOptions } from './pack-file.ts'

const MAX_TAGS = 8

/** The objects of one commit: what was fetched of them, and more when it is asked for. */
export interface RemoteObjects extends Disposable {
  /** Hash of the commit's folder. */
  readonly root: string
  folder(oid: string): Promise<Buffer>
  /** Files that `file` will be asked for. */
  want(oids: readonly string[]): Promise<void>
  file(oid: string): Promise<Buffer | typeof TOO_LARGE>
}

export interface RemoteObjectsOptions {
  readonly remote: GitRemote
  /** Of a commit, or of a tag that leads to one. */
  readonly tip: string
  readonly pack: PackOptions
  readonly file: PackFileOptions
}

/** Where the server can leave files out, only folders come at first; then the wanted files alone. */
export async function fetchCommit(options: RemoteObjectsOptions): Promise<RemoteObjects> {
  const { remote, tip } = options
  const files = new DisposableStack()
  const packs: Pack[] = []
  let complete = false

  async function fetchPack(wish: FetchWish): Promise<void> {
    const file = files.use(new PackFile(options.file))
    await remote.fetch(wish, file)
    packs.push(await Pack.open(file, options.pack))
  }
  async function fetchAll(): Promise<void> {
    complete = true
    await fetchPack({ wants: [tip], depth1: true })
  }
  async function find(oid: string, kind: ObjectKind): Promise<Buffer | typeof TOO_LARGE | undefined> {
    let found: Buffer | typeof TOO_LARGE | undefined
    for (const pack of packs) {
      found = (await pack.read(oid, kind)) ?? found
      if (found instanceof Buffer) break
    }
    return found
  }
  async function structure(oid: string, kind: ObjectKind): Promise<Buffer> {
    const found = await find(oid, kind)
    if (found === undefined) throw failed(`the git server did not send a ${kind} that belongs to the commit`)
    if (found === TOO_LARGE) throw overLimit(`the git repository has a ${kind} that is too large`)
    return found
  }
  async function rootFolder(): Promise<string> {
    let oid = tip
    for (let tags = 0; tags < MAX_TAGS; tags++) {
      const commit = await find(oid, 'commit')
      if (commit instanceof Buffer) return parseCommit(commit)
      const found = await find(oid, 'tag')
      if (!(found instanceof Buffer)) throw failed(`the git server sent no commit ${oid}`)
      const tag = parseTag(found)
      if (tag.kind !== 'commit' && tag.kind !== 'tag') throw failed(`the tag leads to a ${tag.kind}, not to a commit`)
      oid = tag.oid
    }
    throw failed(`the tag leads to a tag, and so on for more than ${MAX_TAGS} times`)
  }

  try {
    const withoutFiles = () => fetchPack({ wants: [tip], depth1: true, withoutBlobs: true })
    await (remote.canFilter ? unlessRefused(withoutFiles, fetchAll) : fetchAll())
    const root = await rootFolder()
    return {
      root,
      folder: (oid) => structure(oid, 'tree'),
      async want(oids) {
        const absent = new Set(oids)
        for (const oid of absent) for (const pack of packs) if (await pack.has(oid, 'blob')) absent.delete(oid)
        if (absent.size > 0 && !complete) await unlessRefused(() => fetchPack({ wants: [...absent] }), fetchAll)
      },
      async file(oid) {
        const found = await find(oid, 'blob')
        if (found === undefined) throw failed('the git server did not send a file that belongs to the commit')
        return found
      },
      [Symbol.dispose]: () => files.dispose(),
    }
  } catch (error) {
    files.dispose()
    throw error
  }
}

/** Servers announce more than they allow. Then everything is fetched, as from those that announce nothing. */
async function unlessRefused(first: () => Promise<void>, otherwise: () => Promise<void>): Promise<void> {
  try {
    await first()
  } catch (error) {
    if (!(error instanceof RefusedByServer)) throw error
    await otherwise()
  }
}
