import { createHash } from 'node:crypto'
import { failed } from './git-error.ts'

export type ObjectKind = 'commit' | 'tree' | 'blob' | 'tag'

export interface TreeEntry {
  readonly kind: 'file' | 'folder' | 'symlink' | 'submodule' | 'other'
  readonly name: string
  readonly oid: string
}

const KINDS: Readonly<Record<string, TreeEntry['kind']>> = {
  '100644': 'file',
  '100755': 'file',
  '40000': 'folder',
  '120000': 'symlink',
  '160000': 'submodule',
}

export const OID = /^[0-9a-f]{40}$/

export function objectHash(kind: ObjectKind, size: number) {
  return createHash('sha1').update(`${kind} ${size}\0`)
}

/** Entries in the order of the tree. A name that means something else to a file system makes the whole tree bad. */
export function parseTree(data: Buffer): TreeEntry[] {
  const entries: TreeEntry[] = []
  for (let at = 0; at < data.length; ) {
    const space = data.indexOf(0x20, at)
    const nul = data.indexOf(0, at)
    if (space < 0 || nul < space || nul + 21 > data.length) throw failed('a folder of the repository is broken')
    const name = data.toString('utf8', space + 1, nul)
    if (isUnsafeName(name)) throw failed('a folder of the repository has an entry with a forbidden name')
    entries.push({ kind: KINDS[data.toString('latin1', at, space)] ?? 'other', name, oid: data.toString('hex', nul + 1, nul + 21) })
    at = nul + 21
  }
  return entries
}

/** The tree of a commit. */
export function parseCommit(data: Buffer): string {
  const oid = /^tree ([0-9a-f]{40})\n/.exec(data.toString('latin1', 0, 46))?.[1]
  if (oid === undefined) throw failed('the commit is broken')
  return oid
}

/** Target of an annotated tag. */
export function parseTag(data: Buffer): { readonly oid: string; readonly kind: string } {
  const [, oid, kind] = /^object ([0-9a-f]{40})\ntype ([a-z]{1,10})\n/.exec(data.toString('latin1', 0, 80)) ?? []
  if (oid === undefined || kind === undefined) throw failed('the tag is broken')
  return { oid, kind }
}

function isUnsafeName(name: string): boolean {
  return name === '' || name === '.' || name === '..' || name.includes('/') || name.toLowerCase() === '.git'
}
