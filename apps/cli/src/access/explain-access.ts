import type { AccessPolicies } from '@thv/authz/access/access-policies'
import type { Operation } from '@thv/authz/access/operation'
import type { Subject } from '@thv/authz/access/principal'
import { loadPoliciesAtOnce, type TextedPolicies } from '@thv/authz/load/load-at-once'
import { ThvError } from '@thv/kernel/errors'
import type { RateLimitBucket } from '@thv/runconfig/policy-config'
import type { RunConfig } from '@thv/runconfig/run-config'
import { plainText } from '../text/plain-text.ts'

export interface AccessQuestion {
  /** Undefined: a caller without a token. */
  readonly subject: Subject | undefined
  /** As clients call it. Undefined: every tool that a policy names. */
  readonly tool: string | undefined
  readonly args: Readonly<Record<string, unknown>>
}

/** The decision of a server's policies about a call, and its reasons, by the code that the proxy runs. */
export function explainAccess(config: RunConfig, question: AccessQuestion): string {
  const { authz_config: authz, authz_config_path: path } = config
  if (question.tool !== undefined && !isOffered(config, question.tool))
    return `tools/call ${plainText(question.tool)}: denied; not in lists\n\nThe tool configuration of ${config.name} hides it from every caller.\n`
  if (authz === undefined && path !== undefined)
    throw new ThvError('usage', `the policies of ${config.name} are in ${plainText(path)} of its proxy, which cannot be read from here`)
  if (authz === undefined)
    return `${config.name} has no policies: every caller may do everything.\n${limitLines(config, question.tool).join('')}`
  const loaded = loadPoliciesAtOnce(authz, config.name)
  if (!loaded.ok) throw new ThvError('usage', `the policies of ${config.name} do not work: ${loaded.problems.join('; ')}`)
  const { candidate } = loaded
  if (question.tool === undefined) return overview(loaded.policies, candidate?.policies, question.subject)
  const call = { operation: operationOf(config, question.tool, question.args), subject: question.subject, tool: question.tool }
  const enforced = explainCall(loaded, call)
  return [
    `${callerText(loaded.policies, question.subject)}\n`,
    ...enforced.lines,
    ...(candidate === undefined ? [] : candidateLines(enforced, explainCall(candidate, call))),
    ...limitLines(config, question.tool),
  ].join('')
}

interface Call {
  readonly operation: Operation
  readonly subject: Subject | undefined
  readonly tool: string
}

interface Explanation {
  /** The decision alone, to compare it with another one. */
  readonly decision: string
  readonly lines: readonly string[]
}

/** Candidate policies are evaluated and never enforced. */
function candidateLines(enforced: Explanation, candidate: Explanation): string[] {
  const differs = candidate.decision === enforced.decision ? 'the same' : 'otherwise'
  return [`\ncandidate policies, which are not enforced, decide ${differs}:\n`, ...candidate.lines.map((text) => indented(text, true))]
}

function explainCall({ policies, texts }: TextedPolicies, { operation, subject, tool }: Call): Explanation {
  const { allowed, policies: deciding, failures } = policies.decide(subject, operation)
  const scopes = allowed ? undefined : policies.scopesFor(subject, operation)
  const isShown = policies.isShown(subject, { ...operation, args: 'unknown' } as Operation)
  const decision = `${allowed ? 'allowed' : 'denied'}${isShown ? '' : '; not in lists'}`
  const lines = [
    `tools/call ${plainText(tool)}: ${decision}\n`,
    ...deciding.map(({ id, effect }) => `\n${effect} ${plainText(id)}:\n${indented(texts.get(id) ?? '')}`),
    ...failures.map(({ policy, message }) => `\n${plainText(policy.id)} fails, which denies the call: ${plainText(message)}\n`),
    ...(!allowed && deciding.length === 0 && failures.length === 0 ? ['\nNo policy permits it.\n'] : []),
    ...(scopes === undefined ? [] : [`\nA token with these scopes would be allowed: ${scopes.join(' ')}\n`]),
  ]
  return { decision, lines }
}

function indented(text: string, keepsEmpty = false): string {
  const lines = keepsEmpty ? text.replace(/\n$/, '').split('\n') : text.trim().split('\n')
  return lines.map((line) => (line === '' ? '\n' : `  ${plainText(line)}\n`)).join('')
}

/** As the filter of tools decides it, before any policy is asked. */
function isOffered({ tools_filter: filter, tools_override: overrides }: RunConfig, tool: string): boolean {
  if (filter.length > 0 && !filter.includes(tool)) return false
  if (Object.values(overrides).some(({ name }) => name === tool)) return true
  return !Object.hasOwn(overrides, tool) || overrides[tool]?.name === undefined
}

function operationOf(config: RunConfig, tool: string, args: Readonly<Record<string, unknown>>): Operation {
  const [name = tool] = Object.entries(config.tools_override).find(([, override]) => override.name === tool) ?? []
  return { action: 'call_tool', name, visibleName: tool, args, hints: config.tools_override[name]?.annotations }
}

function callerText(policies: AccessPolicies, subject: Subject | undefined): string {
  const { uid, entity, scopes } = policies.principal(subject)
  const groups = [...entity.ancestors].map((key) => key.replace('\0', '::'))
  return [
    `caller ${plainText(String(uid))}`,
    ...(groups.length > 0 ? [`in ${plainText(groups.join(', '))}`] : []),
    ...(scopes.size > 0 ? [`with scopes ${plainText([...scopes].join(' '))}`] : []),
  ].join(', ')
}

const TOOL_KEY = 'Tool\0'

function overview(policies: AccessPolicies, candidate: AccessPolicies | undefined, subject: Subject | undefined): string {
  const keys = [policies, ...(candidate === undefined ? [] : [candidate])].flatMap(({ set }) =>
    set.policies.flatMap(({ resource }) => (resource?.startsWith(TOOL_KEY) ? [resource.slice(TOOL_KEY.length)] : [])),
  )
  const lines = [...new Set(keys)].sort().map((name) => {
    const operation: Operation = { action: 'call_tool', name, visibleName: name, args: 'unknown', hints: undefined }
    const state = (by: AccessPolicies) => (by.isShown(subject, operation) ? 'shown' : 'hidden')
    const other = candidate === undefined || state(candidate) === state(policies) ? '' : `; ${state(candidate)} by the candidate policies`
    return `  ${plainText(name)}: ${state(policies)}${other}\n`
  })
  return `${callerText(policies, subject)}\ntools that the policies name:\n${lines.length > 0 ? lines.join('') : '  none\n'}`
}

function limitLines({ rate_limit_config: limits }: RunConfig, tool: string | undefined): string[] {
  if (limits === undefined) return []
  const ofTool = limits.tools.find(({ name }) => name === tool)
  const rows: (readonly [string, RateLimitBucket | undefined])[] = [
    ['all callers', limits.shared],
    ['each user', limits.per_user],
    [`all callers of ${tool}`, ofTool?.shared],
    [`each user of ${tool}`, ofTool?.per_user],
  ]
  const lines = rows.flatMap(([who, bucket]) =>
    bucket === undefined ? [] : [`  ${plainText(who)}: ${bucket.max_tokens} calls per ${bucket.refill_period}\n`],
  )
  return lines.length > 0 ? ['\nlimits:\n', ...lines] : []
}
