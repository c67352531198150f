import { ThvError } from '@thv/kernel/errors'
import type { KindCatalog, ServedResource } from './kind-catalog.ts'

/** Objects of one kind: the named ones, or all. */
export interface Target {
  readonly resource: ServedResource
  readonly names: readonly string[] | undefined
}

/** `KIND[,KIND…] [NAME…]` or `KIND/NAME …`. */
export function parseTargets(words: readonly string[], catalog: KindCatalog): Target[] {
  if (words.some((word) => word.includes('/'))) return words.map((word) => slashed(word, catalog))
  const [kinds = '', ...names] = words
  const resources = kinds.split(',').flatMap((kind) => catalog.find(kind))
  if (resources.length === 0) throw new ThvError('usage', 'specify a kind, such as mcpservers')
  if (resources.length > 1 && names.length > 0)
    throw new ThvError('usage', 'names can be given for one kind only; use KIND/NAME for several')
  return resources.map((resource) => ({ resource, names: names.length === 0 ? undefined : names }))
}

function slashed(word: string, catalog: KindCatalog): Target {
  const [kind = '', name = '', ...rest] = word.split('/')
  const [resource, ...more] = kind === '' || name === '' || rest.length > 0 ? [] : catalog.find(kind)
  if (resource === undefined || more.length > 0) throw new ThvError('usage', `${JSON.stringify(word)} is not KIND/NAME`)
  return { resource, names: [name] }
}
