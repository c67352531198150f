import type { Problem } from '@thv/runconfig/field'
import type { BackendAuthConfig, BackendAuthType, VmcpConfig } from './vmcp-config.ts'

const NOT_BUILT = 'is not built'

/** Parts of a valid file that no program of this version can apply. Not empty: the file is refused, so that nothing is left out in silence. */
export function unsupportedParts(config: VmcpConfig): readonly Problem[] {
  const parts: Problem[] = []
  const refuse = (path: string, message = NOT_BUILT) => parts.push({ path, message })
  if (config.incomingAuth.type === 'local') refuse('incomingAuth.type', 'local is not built')
  const { default: fallback, backends } = config.outgoingAuth
  if (fallback !== undefined) refuseAuth(fallback, 'outgoingAuth.default', refuse)
  for (const [name, auth] of Object.entries(backends)) refuseAuth(auth, `outgoingAuth.backends.${name}`, refuse)
  if (config.compositeToolRefs.length > 0) refuse('compositeToolRefs', 'is for the operator, which writes compositeTools')
  if (config.codeMode !== undefined) refuse('codeMode')
  if (config.optimizer?.embeddingService !== undefined) refuse('optimizer.embeddingService')
  if (config.operational.retry?.on.includes('timeout')) refuse('operational.retry.on', 'timeout is not built')
  return parts
}

const BUILT_AUTH: ReadonlySet<BackendAuthType> = new Set([
  'unauthenticated',
  'header_injection',
  'bearer_token',
  'client_credentials',
  'token_exchange',
  'caller_token',
  'upstream_inject',
])

function refuseAuth({ type }: BackendAuthConfig, path: string, refuse: (path: string, message?: string) => void): void {
  if (!BUILT_AUTH.has(type)) refuse(`${path}.type`, `${type} is not built`)
}
