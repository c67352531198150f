import { isAbsolute } from 'node:path'
import { checkAuthServer } from '@thv/runconfig/auth-server-rules'
import { compositeProblems, type VmcpProblem } from './composite-rules.ts'
import { durationMs } from './durations.ts'
import { providerProblem, upstreamProblem } from './upstream-problem.ts'
import {
  type AggregationConfig,
  type BackendAuthConfig,
  type BackendAuthType,
  type IncomingAuthConfig,
  type OperationalConfig,
  SEARCH_TOOLS,
  type SessionStorageConfig,
  type VmcpConfig,
} from './vmcp-config.ts'

type Report = (path: string, message: string) => void

/** Rules that join several fields. Pure; the fields themselves are right already. */
export function ruleProblems(config: VmcpConfig): readonly VmcpProblem[] {
  const problems: VmcpProblem[] = []
  const report: Report = (path, message) => problems.push({ path, message })
  checkBackends(config, report)
  checkIncoming(config.incomingAuth, report)
  checkAggregation(config.aggregation, report)
  const { default: fallback, backends } = config.outgoingAuth
  if (fallback !== undefined) checkBackendAuth(fallback, 'outgoingAuth.default', report)
  for (const [name, auth] of Object.entries(backends)) checkBackendAuth(auth, `outgoingAuth.backends.${name}`, report)
  checkCallerToken(config, report)
  checkAuthServerPart(config, report)
  if (config.outgoingAuth.source === 'discovered' && config.backends.length > 0)
    report('backends', 'must be empty beside outgoingAuth.source discovered')
  checkOperational(config.operational, report)
  checkNames(config, report)
  checkSessionStorage(config.sessionStorage, report)
  checkPassthrough(config.passthroughHeaders, report)
  checkToolSearch(config, report)
  if (config.workflows.authorizeSteps && config.incomingAuth.authz?.type !== 'cedar')
    report('workflows.authorizeSteps', 'needs policies in incomingAuth.authz')
  for (const { name } of config.compositeTools)
    if (Object.hasOwn(config.operational.timeouts.perTool, name))
      report(`operational.timeouts.perTool.${name}`, 'is a composite tool, which has a timeout of its own')
  problems.push(...compositeProblems(config.compositeTools))
  return problems
}

function checkBackends({ backends }: VmcpConfig, report: Report): void {
  const seen = new Map<string, number>()
  for (const [index, { name, caBundlePath, type }] of backends.entries()) {
    const first = seen.get(name)
    if (first !== undefined) report(`backends[${index}].name`, `is the name of backends[${first}] already`)
    else seen.set(name, index)
    if (caBundlePath === undefined) continue
    const at = `backends[${index}].caBundlePath`
    if (type !== 'entry') report(at, 'is for backends of type entry')
    if (!isAbsolute(caBundlePath) || caBundlePath.split('/').includes('..')) report(at, 'must be an absolute path without ".."')
  }
}

/** A name that is misspelled would leave what it hides, limits or authenticates without effect. */
function checkNames({ backends, outgoingAuth, aggregation, operational }: VmcpConfig, report: Report): void {
  if (backends.length === 0) return
  const known = new Set(backends.map(({ name }) => name))
  const check = (path: string, name: string) => known.has(name) || report(path, 'names no backend of this file')
  for (const name of Object.keys(outgoingAuth.backends)) check(`outgoingAuth.backends.${name}`, name)
  for (const [index, { workload }] of aggregation.tools.entries()) check(`aggregation.tools[${index}].workload`, workload)
  const { priorityOrder, winners } = aggregation.conflictResolutionConfig
  const at = 'aggregation.conflictResolutionConfig'
  for (const [index, name] of priorityOrder.entries()) check(`${at}.priorityOrder[${index}]`, name)
  for (const [tool, name] of Object.entries(winners)) check(`${at}.winners.${tool}`, name)
  for (const name of Object.keys(operational.timeouts.perWorkload)) check(`operational.timeouts.perWorkload.${name}`, name)
}

function checkSessionStorage({ provider, db, ...rest }: SessionStorageConfig, report: Report): void {
  const { address, sentinel, keyPrefix, username, tls } = rest
  if (provider === 'redis') {
    if ((address === undefined) === (sentinel === undefined)) report('sessionStorage', 'expects exactly one of address and sentinel')
    return
  }
  const names = { address, sentinel, keyPrefix, username, tls }
  const given = { db: db !== 0, ...Object.fromEntries(Object.entries(names).map(([name, value]) => [name, value !== undefined])) }
  for (const [name, isGiven] of Object.entries(given)) if (isGiven) report(`sessionStorage.${name}`, 'is for provider redis')
}

function checkIncoming({ type, oidc, authz }: IncomingAuthConfig, report: Report): void {
  if (type === 'oidc' && oidc === undefined) report('incomingAuth.oidc', 'is required beside type oidc')
  if (type !== 'oidc' && oidc !== undefined) report('incomingAuth.oidc', `must not stand beside type ${type}`)
  if (oidc?.clientSecretEnv !== undefined && oidc.clientId === undefined) report('incomingAuth.oidc.clientSecretEnv', 'needs clientId')
  if (authz?.type === 'cedar' && authz.policies.length === 0) report('incomingAuth.authz.policies', 'is required beside type cedar')
  if (authz?.type === 'none' && authz.policies.length > 0) report('incomingAuth.authz.policies', 'must not stand beside type none')
}

function checkAggregation(aggregation: AggregationConfig, report: Report): void {
  const { conflictResolution: strategy, conflictResolutionConfig: settings, tools } = aggregation
  const at = 'aggregation.conflictResolutionConfig'
  if (strategy === 'priority' && settings.priorityOrder.length === 0)
    report(`${at}.priorityOrder`, 'is required beside conflictResolution priority')
  if (strategy !== 'priority' && settings.priorityOrder.length > 0) report(`${at}.priorityOrder`, 'is for conflictResolution priority')
  if (new Set(settings.priorityOrder).size < settings.priorityOrder.length) report(`${at}.priorityOrder`, 'names a backend twice')
  if (strategy !== 'manual' && Object.keys(settings.winners).length > 0) report(`${at}.winners`, 'is for conflictResolution manual')
  if (strategy !== 'selector' && settings.selectorArgument !== 'backend')
    report(`${at}.selectorArgument`, 'is for conflictResolution selector')
  if (strategy === 'manual' && tools.length === 0 && Object.keys(settings.winners).length === 0)
    report('aggregation.tools', 'expects an entry, or conflictResolutionConfig.winners, beside conflictResolution manual')
  const seen = new Set<string>()
  for (const [index, entry] of tools.entries()) {
    const path = `aggregation.tools[${index}]`
    if (seen.has(entry.workload)) report(`${path}.workload`, 'has an entry already')
    seen.add(entry.workload)
    if (entry.excludeAll && (entry.filter.length > 0 || entry.exclude.length > 0))
      report(`${path}.excludeAll`, 'leaves filter and exclude without effect; remove them')
    for (const [name, { name: newName, description }] of Object.entries(entry.overrides))
      if (newName === undefined && description === undefined) report(`${path}.overrides.${name}`, 'expects a name or a description')
  }
  if (strategy !== 'priority' || aggregation.defaultToolVisibility !== 'deny') return
  for (const name of settings.priorityOrder)
    if (!seen.has(name)) report(`${at}.priorityOrder`, `names ${name}, which needs an entry in tools beside defaultToolVisibility deny`)
}

const BLOCKS: Readonly<Record<Exclude<BackendAuthType, 'unauthenticated' | 'caller_token'>, Exclude<keyof BackendAuthConfig, 'type'>>> = {
  header_injection: 'headerInjection',
  bearer_token: 'bearerToken',
  client_credentials: 'clientCredentials',
  token_exchange: 'tokenExchange',
  upstream_inject: 'upstreamInject',
  aws_sts: 'awsSts',
  obo: 'obo',
  xaa: 'xaa',
}

function checkBackendAuth(auth: BackendAuthConfig, path: string, report: Report): void {
  const own = auth.type === 'unauthenticated' || auth.type === 'caller_token' ? undefined : BLOCKS[auth.type]
  if (own !== undefined && auth[own] === undefined) report(`${path}.${own}`, `is required beside type ${auth.type}`)
  for (const block of Object.values(BLOCKS))
    if (block !== own && auth[block] !== undefined) report(`${path}.${block}`, `must not stand beside type ${auth.type}`)
  const { headerInjection: header, tokenExchange: exchange, bearerToken: bearer, clientCredentials: client } = auth
  if (header !== undefined && (header.headerValue === undefined) === (header.headerValueEnv === undefined))
    report(`${path}.headerInjection`, 'expects exactly one of headerValue and headerValueEnv')
  if (exchange?.clientSecret !== undefined && exchange.clientSecretEnv !== undefined)
    report(`${path}.tokenExchange`, 'expects at most one of clientSecret and clientSecretEnv')
  if (bearer !== undefined && (bearer.tokenEnv === undefined) === (bearer.tokenFile === undefined))
    report(`${path}.bearerToken`, 'expects exactly one of tokenEnv and tokenFile')
  if (client !== undefined && (client.tokenUrl === undefined) === (client.issuer === undefined))
    report(`${path}.clientCredentials`, 'expects exactly one of tokenUrl and issuer')
}

/** The token of a caller is for servers of the cluster that accept the same ones, never for a server elsewhere. */
function checkCallerToken({ incomingAuth, outgoingAuth, backends }: VmcpConfig, report: Report): void {
  if (outgoingAuth.default?.type === 'caller_token') report('outgoingAuth.default.type', 'caller_token is for single backends')
  for (const [name, { type }] of Object.entries(outgoingAuth.backends)) {
    if (type !== 'caller_token') continue
    const at = `outgoingAuth.backends.${name}.type`
    if (incomingAuth.type !== 'oidc') report(at, 'caller_token needs incomingAuth of type oidc')
    if (backends.some((backend) => backend.name === name && backend.type === 'entry')) report(at, 'caller_token is not for entries')
  }
}

/** Clients come with tokens of the server itself, and each backend gets the token of a provider that it knows. */
function checkAuthServerPart(config: VmcpConfig, report: Report): void {
  const { authServer, incomingAuth, outgoingAuth } = config
  const { oidc } = incomingAuth
  if (authServer !== undefined) {
    const front = oidc && { issuer: oidc.issuer, audience: oidc.audience }
    checkAuthServer(authServer, front, (path, message) =>
      report(path === '' ? 'authServer' : `authServer.${path}`, message.replaceAll('oidc_config', 'incomingAuth.oidc')),
    )
  }
  const primary = incomingAuth.authz?.primaryUpstreamProvider
  const lacks = primary === undefined ? undefined : providerProblem(config, primary)
  if (lacks !== undefined) report('incomingAuth.authz.primaryUpstreamProvider', lacks)
  const all: (readonly [string, BackendAuthConfig | undefined])[] = [
    ['outgoingAuth.default', outgoingAuth.default],
    ...Object.entries(outgoingAuth.backends).map(([name, auth]) => [`outgoingAuth.backends.${name}`, auth] as const),
  ]
  for (const [at, auth] of all) {
    const problem = auth && upstreamProblem(config, auth)
    const gap = problem?.indexOf(' ') ?? 0
    if (problem !== undefined) report(`${at}.${problem.slice(0, gap)}`, problem.slice(gap + 1))
  }
}

function checkOperational({ failureHandling }: OperationalConfig, report: Report): void {
  const { healthCheckInterval: interval, healthCheckTimeout: timeout, circuitBreaker } = failureHandling
  const at = 'operational.failureHandling'
  if (timeout !== undefined && durationMs(timeout) >= durationMs(interval))
    report(`${at}.healthCheckTimeout`, 'must be shorter than healthCheckInterval')
  if (durationMs(circuitBreaker.timeout) < 1_000) report(`${at}.circuitBreaker.timeout`, 'must be at least 1s')
}

/** Headers that authenticate, belong to the connection or belong to MCP itself. */
const NEVER_PASSED =
  /^(authorization|cookie|set-cookie|host|connection|keep-alive|te|trailer|upgrade|http2-settings|transfer-encoding|proxy-.*|content-.*|accept|accept-encoding|expect|origin|forwarded|x-forwarded-.*|x-real-ip|mcp-.*|last-event-id)$/i

function checkPassthrough(names: readonly string[], report: Report): void {
  for (const [index, name] of names.entries()) {
    const at = `passthroughHeaders[${index}]`
    if (!/^[!#$%&'*+.^_`|~0-9A-Za-z-]+$/.test(name)) report(at, 'is not a valid header name')
    else if (NEVER_PASSED.test(name)) report(at, `must not be ${name}: it is never passed on`)
  }
}

/** Settings of an embedding service without one would have no effect. */
function checkToolSearch({ optimizer, compositeTools }: VmcpConfig, report: Report): void {
  if (optimizer === undefined) return
  const { maxToolsToReturn: _, alwaysListed, description: __, embeddingService, ...ofService } = optimizer
  if (embeddingService === undefined)
    for (const [name, value] of Object.entries(ofService)) if (value !== undefined) report(`optimizer.${name}`, 'needs embeddingService')
  const taken: readonly string[] = Object.values(SEARCH_TOOLS)
  for (const [index, name] of alwaysListed.entries()) {
    if (taken.includes(name)) report(`optimizer.alwaysListed[${index}]`, `is ${name}, which is always listed`)
    if (alwaysListed.indexOf(name) < index) report(`optimizer.alwaysListed[${index}]`, 'is in the list already')
  }
  for (const [index, { name }] of compositeTools.entries())
    if (taken.includes(name)) report(`compositeTools[${index}].name`, `must not be ${name} beside optimizer`)
}
