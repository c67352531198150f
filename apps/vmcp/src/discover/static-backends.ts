import { readFile } from 'node:fs/promises'
import { type AddressPolicy, vetUrl } from '@thv/http/outbound/address-policy'
import { apiServerAddresses } from '@thv/http/outbound/api-server-addresses'
import { type CaBundle, parseCaBundle } from '@thv/http/outbound/ca-bundle'
import { tryParseDuration } from '@thv/kernel/duration'
import { errorMessage, isThvError, ThvError } from '@thv/kernel/errors'
import { mountedPath } from '@thv/kernel/mounted-path'
import { InvalidOptions } from '@thv/middleware/pipeline/invalid-options'
import { checkedHeader } from '@thv/middleware/pipeline/outgoing-header'
import type { Log } from '@thv/telemetry/log'
import type { BackendAuthConfig, BackendConfig, VmcpConfig } from '@thv/vmcpconfig/vmcp-config'
import { checkHeaderVariables, type Env, forwardedHeaders } from './forwarded-headers.ts'
import type { ResolvedBackend } from './resolved-backend.ts'

/** The backends of the file, sorted by name. Throws `vmcp_config_invalid`, naming the field. */
export async function staticBackends(config: VmcpConfig, env: Env, log: Log): Promise<readonly ResolvedBackend[]> {
  const policy = policyOf(config, env)
  checkHeaderVariables(
    config.backends.map(({ name }) => name),
    env,
  )
  const resolved = await Promise.all(config.backends.map((backend) => resolve(backend, { config, env, policy, log })))
  return resolved.toSorted((a, b) => (a.name < b.name ? -1 : 1))
}

interface Deps {
  readonly config: VmcpConfig
  readonly env: Env
  readonly policy: AddressPolicy
  readonly log: Log
}

async function resolve(backend: BackendConfig, { config, env, policy, log }: Deps): Promise<ResolvedBackend> {
  const { name, url, transport, caBundlePath } = backend
  const { timeouts } = config.operational
  const verdict = vetUrl(url, policy)
  if (!verdict.ok) throw invalid(`backends.${name}.url: ${verdict.message}`)
  const given = Object.hasOwn(config.outgoingAuth.backends, name) ? config.outgoingAuth.backends[name] : undefined
  const at = given === undefined ? 'outgoingAuth.default' : `outgoingAuth.backends.${name}`
  const auth: BackendAuthConfig = given ?? config.outgoingAuth.default ?? { type: 'unauthenticated' }
  const timeout = Object.hasOwn(timeouts.perWorkload, name) ? timeouts.perWorkload[name] : undefined
  return {
    name,
    url,
    transport,
    authType: auth.type,
    ca: caBundlePath === undefined ? undefined : await readBundle(caBundlePath, name, log),
    policy,
    // Headers that authenticate win over forwarded ones.
    headers: { ...checkedHeaders(forwardedHeaders(name, env), `headers of ${name}`), ...credentials(auth, at, env) },
    timeoutMs: tryParseDuration(timeout ?? timeouts.default) ?? DEFAULT_TIMEOUT_MS,
  }
}

const DEFAULT_TIMEOUT_MS = 30_000

function credentials({ headerInjection: header }: BackendAuthConfig, at: string, env: Env): Readonly<Record<string, string>> {
  if (header === undefined) return {}
  const { headerName, headerValue, headerValueEnv: variable } = header
  const value = headerValue ?? (variable === undefined ? undefined : env[variable])
  if (value === undefined || value === '') throw invalid(`${at}.headerInjection.headerValueEnv: variable ${variable} is missing or empty`)
  return checkedHeaders({ [headerName]: value }, `${at}.headerInjection`)
}

function checkedHeaders(headers: Readonly<Record<string, string>>, at: string): Readonly<Record<string, string>> {
  try {
    return Object.fromEntries(Object.entries(headers).map(([name, value]) => checkedHeader(name, value)))
  } catch (error) {
    if (error instanceof InvalidOptions) throw invalid(`${at}: ${error.message}`)
    throw error
  }
}

async function readBundle(path: string, name: string, log: Log): Promise<CaBundle> {
  const pem = await readFile(mountedPath(path), 'utf8').catch((error: unknown) => {
    throw invalid(`backends.${name}.caBundlePath: ${path} cannot be read: ${errorMessage(error)}`)
  })
  const bundle = parsedBundle(pem, path, name)
  for (const subject of bundle.expired) log.warn('a certificate of the CA bundle has expired', { backend: name, path, subject })
  return bundle
}

function parsedBundle(pem: string, path: string, name: string): CaBundle {
  try {
    return parseCaBundle(pem, { name: path })
  } catch (error) {
    if (isThvError(error, 'ca_bundle_invalid')) throw invalid(`backends.${name}.caBundlePath: ${error.message}`)
    throw error
  }
}

/** Outside of a cluster the servers of this machine are what people want to join. */
function policyOf({ remotePolicy }: VmcpConfig, env: Env): AddressPolicy {
  const blockedAddresses = apiServerAddresses({ env })
  return { ...(remotePolicy ?? { allowLoopback: !env['VMCP_NAMESPACE'] }), blockedAddresses }
}

function invalid(message: string): ThvError {
  return new ThvError('vmcp_config_invalid', message)
}
