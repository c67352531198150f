import { checkAuthServer } from './auth-server-rules.ts'
import { credentialProblems } from './credential-rules.ts'
import { type Findings, joinPath } from './field.ts'
import type { RunConfig } from './run-config.ts'
import { rateLimitProblems, redisProblems } from './shared-state-rules.ts'

/** The image that ToolHive (Go) passes when it is not used. */
const PLACEHOLDER_IMAGE = 'placeholder-for-remote-proxy'

/** Rules that join several fields. */
export function ruleFindings(config: RunConfig, { problems, warnings }: Findings): void {
  const problem = (path: string, message: string) => void problems.push({ path, message })

  if (config.remote_url === undefined) {
    if (config.image === '') problem('image', 'is required unless remote_url names a server that runs elsewhere')
    for (const field of REMOTE_ONLY) {
      if (config[field] !== undefined) problem(field, 'needs remote_url: it is about a server that runs elsewhere')
    }
  } else {
    if (config.transport === 'stdio') problem('transport', 'expects sse or streamable-http beside remote_url')
    if (config.image !== '' && config.image !== PLACEHOLDER_IMAGE)
      warnings.push({ path: 'image', message: 'has no effect beside remote_url' })
  }
  if (config.transport === 'stdio' && config.publish.length > 0)
    problem('publish', 'needs a server with a port: transport sse or streamable-http')

  const telemetry = config.telemetry_config
  const sendsAudit = config.audit_config?.otlp === true
  const sends = telemetry?.tracing_enabled === true || telemetry?.metrics_enabled === true
  if (telemetry?.endpoint !== undefined && !sends && !sendsAudit)
    problem('telemetry_config.endpoint', 'is of no use unless tracing_enabled, metrics_enabled or audit_config.otlp is true')
  if (telemetry?.endpoint === undefined && sends)
    problem('telemetry_config.endpoint', 'is required when tracing_enabled or metrics_enabled is true')
  if (telemetry?.endpoint === undefined && sendsAudit) problem('audit_config.otlp', 'needs telemetry_config.endpoint')
  if (config.authz_config?.candidate?.primary_upstream_provider !== undefined)
    warnings.push({ path: 'authz_config.candidate.primary_upstream_provider', message: OF_THE_ENFORCED })
  checkPrimaryProvider(config, problem)
  credentialProblems(config, problem)
  rateLimitProblems(config, problem)
  checkOidc(config, problem)
  const { embedded_auth_server_config: login } = config
  if (login !== undefined) checkAuthServer(login, config.oidc_config, (path, message) => problem(authServerPath(path), message))
  redisProblems(config, problem)
  checkTools(config, problem)
  checkPodPatch(config, problem)
}

const OF_THE_ENFORCED = 'has no effect: candidates see the claims that the enforced policies see'

/** Policies that are written for the claims of a provider must not see others. */
function checkPrimaryProvider({ authz_config: authz, authz_config_path: path, ...config }: RunConfig, problem: Report): void {
  const { authz_primary_upstream_provider: copy, embedded_auth_server_config: login } = config
  const named = authz?.cedar?.primary_upstream_provider
  const isKnown = (provider: string) => login?.upstreams.some(({ name }) => name === provider) === true
  if (named !== undefined && !isKnown(named)) problem('authz_config.cedar.primary_upstream_provider', NO_PROVIDER)
  if (copy === undefined) return
  if (authz === undefined && path === undefined) problem('authz_primary_upstream_provider', 'needs authz_config_path')
  else if (!isKnown(copy)) problem('authz_primary_upstream_provider', NO_PROVIDER)
}

const NO_PROVIDER = 'must be the name of one of embedded_auth_server_config.upstreams'

const authServerPath = (path: string) => (path === '' ? LOGIN : joinPath(LOGIN, path))
const LOGIN = 'embedded_auth_server_config'

const REMOTE_ONLY = ['remote_ca_bundle_path', 'header_forward', 'aws_sts_config'] as const

type Report = (path: string, message: string) => void

/** Copies of members of `oidc_config` must say the same, and say nothing without it. */
const OIDC_COPIES = { thv_ca_bundle: 'ca_cert_path', jwks_auth_token_file: 'auth_token_file' } as const

function checkOidc(config: RunConfig, problem: Report): void {
  const { oidc_config: oidc } = config
  for (const copy of ['thv_ca_bundle', 'jwks_auth_token_file'] as const) {
    if (config[copy] === undefined) continue
    const original = oidc?.[OIDC_COPIES[copy]]
    if (oidc === undefined) problem(copy, 'needs oidc_config: it is about calls to the issuer')
    else if (original !== undefined && original !== config[copy]) problem(copy, `differs from oidc_config.${OIDC_COPIES[copy]}`)
  }
  if (oidc === undefined) return
  if (oidc.issuer === undefined && !oidc.this_cluster) problem('oidc_config.issuer', 'is required unless this_cluster is true')
  if (oidc.issuer !== undefined && oidc.this_cluster)
    problem('oidc_config.this_cluster', 'takes the place of issuer: leave one of them out')
}

function checkTools({ tools_override: overrides }: RunConfig, problem: Report): void {
  const taken = new Map<string, string>()
  for (const [tool, override] of Object.entries(overrides)) {
    const path = `tools_override.${tool}`
    if (override.name === undefined && override.description === undefined && override.annotations === undefined)
      problem(path, 'expects at least one of name, description and annotations')
    if (override.name === undefined) continue
    const other = taken.get(override.name)
    if (other !== undefined) problem(`${path}.name`, `is also the new name of ${other}`)
    taken.set(override.name, tool)
  }
}

/** Only what the runner itself builds upon; the API server checks the rest. */
function checkPodPatch({ k8s_pod_template_patch: patch }: RunConfig, problem: Report): void {
  if (patch === undefined) return
  const at = 'k8s_pod_template_patch'
  const { spec, metadata } = patch
  if (!isObjectOrAbsent(metadata)) problem(`${at}.metadata`, 'expects an object')
  if (!isObjectOrAbsent(spec)) {
    problem(`${at}.spec`, 'expects an object')
    return
  }
  for (const list of ['containers', 'initContainers'] as const) {
    const containers = spec?.[list]
    if (containers === undefined || containers === null) continue
    if (!Array.isArray(containers)) problem(`${at}.spec.${list}`, 'expects a list')
    else
      containers.forEach((container: unknown, index) => {
        if (!hasName(container)) problem(`${at}.spec.${list}[${index}]`, 'expects an object with a name')
      })
  }
}

function isObjectOrAbsent(value: unknown): value is Readonly<Record<string, unknown>> | undefined | null {
  return value === undefined || value === null || (typeof value === 'object' && !Array.isArray(value))
}

function hasName(value: unknown): boolean {
  return typeof value === 'object' && value !== null && 'name' in value && typeof value.name === 'string' && value.name !== ''
}
