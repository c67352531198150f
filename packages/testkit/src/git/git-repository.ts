import { join } from 'node:path'
import { git } from './git-program.ts'

/** A text is a file; the others are what a careful reader must not follow, or a blob that is there already. */
export type TreeItem =
  | string
  | { readonly symlink: string }
  | { readonly submodule: string }
  | { readonly executable: string }
  | { readonly blob: string }

export interface CommitOptions {
  readonly branch?: string
  /** Not on top of what the branch has: a force push. */
  readonly orphan?: boolean
}

/** A bare repository that is written without a checkout. */
export interface GitRepository {
  readonly name: string
  readonly folder: string
  /** Runs git in it. */
  git(...args: string[]): Promise<string>
  /** Makes these the files of a new commit, all of them, and returns its hash. */
  commit(files: Readonly<Record<string, TreeItem>>, options?: CommitOptions): Promise<string>
}

export async function createGitRepository(root: string, name: string, args: readonly string[] = []): Promise<GitRepository> {
  const folder = join(root, name)
  await git(['init', '-q', '--bare', '--initial-branch=main', ...args, folder])
  const run = (...rest: string[]) => git(['-C', folder, ...rest])
  let seconds = 1_760_000_000
  return {
    name,
    folder,
    git: run,
    async commit(files, { branch = 'main', orphan = false } = {}) {
      const ref = `refs/heads/${branch}`
      const exists = await run('rev-parse', '--verify', '-q', ref).then(
        () => true,
        () => false,
      )
      seconds += 60
      const lines = [
        `commit ${ref}\ncommitter Test <test@example.com> ${seconds} +0000\n${data(`at ${seconds}`)}`,
        exists && !orphan ? `from ${ref}^0\n` : '',
        'deleteall\n',
        ...Object.entries(files).map(([path, item]) => change(path, item)),
        'done\n',
      ]
      if (exists && orphan) await run('update-ref', '-d', ref)
      await git(['-C', folder, 'fast-import', '--quiet', '--force', '--done'], lines.join(''))
      return await run('rev-parse', ref)
    },
  }
}

function change(path: string, item: TreeItem): string {
  if (typeof item === 'string') return `M 100644 inline ${path}\n${data(item)}`
  if ('executable' in item) return `M 100755 inline ${path}\n${data(item.executable)}`
  if ('symlink' in item) return `M 120000 inline ${path}\n${data(item.symlink)}`
  if ('submodule' in item) return `M 160000 ${item.submodule} ${path}\n`
  return `M 100644 ${item.blob} ${path}\n`
}

function data(text: string): string {
  return `data ${Buffer.byteLength(text)}\n${text}\n`
}
