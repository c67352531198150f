import { ThvError } from '@thv/kernel/errors'
import type { RegistryHandler } from './fetch/registry-handler.ts'
import { validateSource } from './fetch/validate-source.ts'

/** Entries of a managed source are published here: there is nothing to fetch. */
export function createManagedHandler(): RegistryHandler {
  const refuse = () => Promise.reject(new ThvError('bad_request', 'a managed source is never fetched: its entries are published'))
  return { validate: validateSource, currentHash: refuse, fetchRegistry: refuse }
}
