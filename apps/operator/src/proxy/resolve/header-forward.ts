import { MCPRemoteProxyCondition, MCPRemoteProxyReason } from '@thv/resources/kinds/mcp-remote-proxy/constants'
import type { CanonicalHeaderForward } from '@thv/resources/shared/header-forward'
import { headerIdentifiers, SECRET_VARIABLE_PREFIX } from '@thv/runconfig/forwarded-headers'
import { blocked, type EnvVar, secretVariable } from '../../deployment/contribution.ts'
import type { Lookup } from '../../references/lookup.ts'
import { missingSecretKey } from '../../references/secret-key.ts'
import { contributes, nothing, type Resolved } from '../contribution.ts'

export interface HeaderForwardArgs {
  readonly headerForward: CanonicalHeaderForward
  /** Of the workload. */
  readonly name: string
  readonly lookup: Pick<Lookup, 'secret'>
}

/** Headers that a proxy adds on the way to a remote server. Values from Secrets reach it by variables only. */
export function resolveHeaderForward({ headerForward, name, lookup }: HeaderForwardArgs): Resolved {
  const { addPlaintextHeaders: plain, addHeadersFromSecret: secret } = headerForward
  if (Object.keys(plain).length === 0 && secret.length === 0) return nothing

  const field = 'spec.headerForward.addHeadersFromSecret'
  const missing = secret.flatMap(({ headerName, valueSecretRef: ref }) => missingSecretKey(lookup, ref, `${field}[${headerName}]`) ?? [])
  if (missing.length > 0)
    return blocked({
      condition: MCPRemoteProxyCondition.ConfigurationValid,
      reason: MCPRemoteProxyReason.HeaderSecretNotFound,
      message: missing.join('; '),
    })

  const identifiers = headerIdentifiers(
    secret.map(({ headerName }) => headerName),
    name,
  )
  const env: EnvVar[] = secret.map(({ headerName, valueSecretRef }) =>
    secretVariable(`${SECRET_VARIABLE_PREFIX}${identifiers[headerName]}`, valueSecretRef),
  )
  return contributes({
    runConfig: { header_forward: { add_plaintext_headers: plain, add_headers_from_secret: identifiers } },
    env,
    secrets: [...new Set(secret.map(({ valueSecretRef }) => valueSecretRef.name))].sort(),
  })
}
