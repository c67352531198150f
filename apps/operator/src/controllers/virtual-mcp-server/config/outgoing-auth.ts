import type { ConditionUpdate } from '@thv/kube'
import {
  backendAuthCondition,
  VirtualMCPServerCondition as Condition,
  discoveredAuthCondition,
  VirtualMCPServerReason as Reason,
} from '@thv/resources/kinds/virtual-mcp-server/constants'
import type { CanonicalOutgoingAuth } from '@thv/resources/kinds/virtual-mcp-server/normalise'
import { compact } from '@thv/resources/schema/normalize'
import { isProblem, memberAuth } from '@thv/vmcpconfig/discovery/member-auth'
import { upstreamProblem } from '@thv/vmcpconfig/upstream-problem'
import type { BackendAuthConfig, OutgoingAuthConfig, VmcpConfig } from '@thv/vmcpconfig/vmcp-config'
import { type Blocker, type Contribution, secretVariable } from '../../../deployment/contribution.ts'
import { judgeAuthConfig } from '../../../references/judge-auth-config.ts'
import type { Lookup } from '../../../references/lookup.ts'
import type { Backend } from './backends.ts'

export interface OutgoingAuth {
  readonly document: OutgoingAuthConfig
  /** Backends whose authentication cannot be worked out; they must not be called without. */
  readonly leftOut: ReadonlySet<string>
  readonly contributions: readonly Contribution[]
  readonly conditions: readonly ConditionUpdate[]
  readonly blockers: readonly Blocker[]
}

interface Deps extends Pick<Lookup, 'externalAuthConfig' | 'secret'> {
  /** The authorization server inside the virtual server, whose providers `upstreamInject` names. */
  readonly authServer: VmcpConfig['authServer']
}

/** How the virtual server authenticates to each backend. Pure. */
export function outgoingAuthOf(auth: CanonicalOutgoingAuth, backends: readonly Backend[], deps: Deps): OutgoingAuth {
  return auth.source === 'inline' ? inlineAuth(auth, backends, deps) : discoveredAuth(auth, deps)
}

/** Every backend gets its own strategy: what the spec says of it, else its own, else the default. */
function inlineAuth(auth: CanonicalOutgoingAuth, backends: readonly Backend[], lookup: Deps): OutgoingAuth {
  const strategies = new Map<string, BackendAuthConfig>()
  const leftOut = new Set<string>()
  const contributions: Contribution[] = []
  const conditions: ConditionUpdate[] = []
  for (const backend of backends) {
    const { name } = backend.config
    const given = Object.hasOwn(auth.backends, name) ? auth.backends[name] : undefined
    const isGiven = given?.type === 'externalAuthConfigRef'
    const lacks = isGiven ? undefined : backend.auth && upstreamProblem(lookup, backend.auth)
    if (lacks !== undefined) {
      leftOut.add(name)
      conditions.push(failed(discoveredAuthCondition(name), { message: `Backend ${name} is left out: its ${inSpecWords(lacks)}` }))
      continue
    }
    if (!isGiven && backend.auth !== undefined) {
      strategies.set(name, backend.auth)
      conditions.push(succeeded(discoveredAuthCondition(name), backend.authConfig))
      continue
    }
    const fallback = given === undefined && auth.default?.type === 'externalAuthConfigRef' ? auth.default : undefined
    const ref = isGiven ? given.externalAuthConfigRef.name : fallback?.externalAuthConfigRef.name
    const condition = isGiven ? backendAuthCondition(name) : discoveredAuthCondition(name)
    if (ref === undefined) {
      if (backend.warning !== undefined)
        conditions.push(failed(condition, { reason: backend.warning.reason, message: `${name}: ${backend.warning.message}` }))
      continue
    }
    const converted = convert(ref, `${name}${OF_SPEC}`, lookup)
    if (converted.ok) {
      strategies.set(name, converted.auth)
      contributions.push(converted.contribution)
      conditions.push(succeeded(condition, ref))
    } else {
      leftOut.add(name)
      conditions.push(failed(condition, { message: `Backend ${name} is left out: ${converted.why}` }))
    }
  }
  return { document: { source: 'inline', backends: Object.fromEntries(strategies) }, leftOut, contributions, conditions, blockers: [] }
}

/** Ends names under which secrets that the spec names are kept: a member may have a secret of its own, and no name has two dots. */
const OF_SPEC = '..spec'

/** The virtual server works out the rest itself. What the spec names must be there: the operator cannot leave a backend out. */
function discoveredAuth(auth: CanonicalOutgoingAuth, lookup: Deps): OutgoingAuth {
  const contributions: Contribution[] = []
  const conditions: ConditionUpdate[] = []
  const blockers: Blocker[] = []
  const strategyOf = (given: CanonicalOutgoingAuth['default'], backend: string, condition: string): BackendAuthConfig | undefined => {
    if (given?.type !== 'externalAuthConfigRef') return undefined
    const { name } = given.externalAuthConfigRef
    const converted = convert(name, backend, lookup)
    if (!converted.ok) {
      blockers.push({ condition, reason: Reason.ConversionFailed, message: converted.why })
      return undefined
    }
    contributions.push(converted.contribution)
    conditions.push(succeeded(condition, name))
    return converted.auth
  }
  const fallback = strategyOf(auth.default, OF_SPEC, Condition.DefaultAuthConfig)
  const backends = Object.entries(auth.backends).flatMap(([name, given]) => {
    const strategy = strategyOf(given, `${name}${OF_SPEC}`, backendAuthCondition(name))
    return strategy === undefined ? [] : [[name, strategy] as const]
  })
  const document = compact({ source: 'discovered' as const, default: fallback, backends: Object.fromEntries(backends) })
  return { document, leftOut: new Set(), contributions, conditions, blockers }
}

type Converted =
  | { readonly ok: true; readonly auth: BackendAuthConfig; readonly contribution: Contribution }
  | { readonly ok: false; readonly why: string }

/** An MCPExternalAuthConfig in the words of the file. Secrets reach the pods as variables only. */
function convert(name: string, backend: string, lookup: Deps): Converted {
  const config = lookup.externalAuthConfig(name)
  if (config === undefined) return { ok: false, why: `MCPExternalAuthConfig ${name} does not exist in this namespace: create it` }
  const { valid } = judgeAuthConfig(config, lookup)
  if (valid.status !== 'True') return { ok: false, why: `MCPExternalAuthConfig ${name} is not valid: ${valid.message}` }
  const made = memberAuth(config, backend)
  if (isProblem(made)) return { ok: false, why: `MCPExternalAuthConfig ${name}: ${made.message}` }
  const { auth, secrets } = made
  const lacks = upstreamProblem(lookup, auth)
  if (lacks !== undefined) return { ok: false, why: `MCPExternalAuthConfig ${name}: ${inSpecWords(lacks)}` }
  const env = secrets.map((variable) => secretVariable(variable.name, variable.secret))
  return { ok: true, auth, contribution: { env, secrets: secrets.map(({ secret }) => secret.name) } }
}

function inSpecWords(problem: string): string {
  return problem
    .replaceAll('authServer.disable_upstream_token_injection', 'spec.authServerConfig.disableUpstreamTokenInjection')
    .replaceAll(/\bauthServer\b/g, 'spec.authServerConfig')
}

function succeeded(type: string, name: string | undefined): ConditionUpdate {
  const message = name === undefined ? 'the token of the caller is passed on' : `MCPExternalAuthConfig ${name} is used`
  return { type, status: 'True', reason: Reason.ConversionSucceeded, message }
}

function failed(type: string, { reason = Reason.ConversionFailed, message }: { reason?: string; message: string }): ConditionUpdate {
  return { type, status: 'False', reason, message }
}
