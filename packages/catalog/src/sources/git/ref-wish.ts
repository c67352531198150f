import type { GitSource } from '../fetch/source-config.ts'

/** The requested part of a repository. */
export type RefWish =
  | { readonly kind: 'ref'; readonly name: string; readonly label: string }
  | { readonly kind: 'commit'; readonly oid: string; readonly label: string }

export function refWish({ branch, tag, commit }: GitSource): RefWish {
  if (commit !== undefined) return { kind: 'commit', oid: commit.toLowerCase(), label: `commit ${commit.toLowerCase()}` }
  if (tag !== undefined) return { kind: 'ref', name: `refs/tags/${tag}`, label: `tag ${tag}` }
  if (branch !== undefined) return { kind: 'ref', name: `refs/heads/${branch}`, label: `branch ${branch}` }
  return { kind: 'ref', name: 'HEAD', label: 'default branch' }
}
