import { compareCodePoints } from '../../text.ts'
import { failed, overLimit } from './git-error.ts'
import { parseTree, type TreeEntry } from './git-objects.ts'

export interface FilesAtPath {
  /** One file, or the .json files of a folder in the order of their names. */
  readonly files: readonly { readonly path: string; readonly oid: string }[]
  readonly isFolder: boolean
  /** Of a folder: what is named like a file and is none, and why. */
  readonly leftOut: readonly { readonly path: string; readonly message: string }[]
}

export interface Folders {
  readonly root: string
  folder(oid: string): Promise<Buffer>
}

const MAX_FILES = 10_000

/** Finds a path in a commit without a file system: a symlink is not followed anywhere, and there is no way out of the root. */
export async function filesAtPath(folders: Folders, path: string): Promise<FilesAtPath> {
  const parts = path === '.' ? [] : path.replace(/\/$/, '').split('/')
  let at: TreeEntry = { kind: 'folder', name: '', oid: folders.root }
  for (const [i, part] of parts.entries()) {
    const here = parts.slice(0, i + 1).join('/')
    if (at.kind !== 'folder') throw failed(`the git repository has no ${path}: ${parts.slice(0, i).join('/')} is a file`)
    const found = parseTree(await folders.folder(at.oid)).find(({ name }) => name === part)
    if (found === undefined) throw failed(`the git repository has no ${here}${here === path ? '' : `, so no ${path}`}`)
    if (found.kind !== 'file' && found.kind !== 'folder') throw failed(`${here} ${refusal(found)}`)
    at = found
  }
  if (at.kind === 'file') return { files: [{ path, oid: at.oid }], isFolder: false, leftOut: [] }
  return jsonFiles(parseTree(await folders.folder(at.oid)), parts.join('/'))
}

function jsonFiles(entries: readonly TreeEntry[], folder: string): FilesAtPath {
  // As of a folder of this machine: hidden ones do not count.
  const named = entries.filter(({ name, kind }) => name.endsWith('.json') && !name.startsWith('.') && kind !== 'folder')
  if (named.length > MAX_FILES) throw overLimit(`the folder ${folder || '.'} has more than ${MAX_FILES} .json files`)
  const pathOf = ({ name }: TreeEntry) => (folder === '' ? name : `${folder}/${name}`)
  const sorted = named.toSorted((a, b) => compareCodePoints(a.name, b.name))
  return {
    files: sorted.filter(({ kind }) => kind === 'file').map((entry) => ({ path: pathOf(entry), oid: entry.oid })),
    isFolder: true,
    leftOut: sorted.filter(({ kind }) => kind !== 'file').map((entry) => ({ path: pathOf(entry), message: refusal(entry) })),
  }
}

function refusal({ kind }: TreeEntry): string {
  if (kind === 'symlink') return 'is a symbolic link, which is not followed: name what it leads to'
  if (kind === 'submodule') return 'is a submodule, which is not fetched: make it a source of its own'
  return 'is neither a file nor a folder'
}
