import type { Outbound } from '@thv/http/outbound/outbound'
import type { BackoffOptions } from '@thv/kernel/backoff'
import { createApiHandler } from './api/api-handler.ts'
import type { RegistryHandler } from './fetch/registry-handler.ts'
import type { SourceType } from './fetch/source-config.ts'
import { createFileHandler } from './file/file-handler.ts'
import { createGitHandler } from './git/git-handler.ts'
import { createManagedHandler } from './managed-handler.ts'

export interface HandlerDeps {
  readonly outbound: Outbound
  /** Between the tries of one page of another registry. */
  readonly backoff?: BackoffOptions
}

/** That of kubernetes sources belongs to the registry server: it looks into the other sources. */
export function createHandlers(deps: HandlerDeps): Readonly<Record<Exclude<SourceType, 'kubernetes'>, RegistryHandler>> {
  return {
    git: createGitHandler(deps.outbound),
    api: createApiHandler(deps),
    file: createFileHandler(deps.outbound),
    managed: createManagedHandler(),
  }
}
