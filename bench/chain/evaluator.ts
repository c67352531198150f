import { createRequire } from 'node:module'
import { performance } from 'node:perf_hooks'
import { loadPoliciesAtOnce } from '@thv/authz/load/load-at-once'
import { policyTexts } from './policies.ts'

/* Prints the time of one decision, by our evaluator and by the Cedar engine, for THV_POLICIES policies. */

export interface EvaluatorReport {
  readonly oursUs: number
  readonly engineUs: number
}

const count = Number(process.env['THV_POLICIES'])
const policies = policyTexts(count)
const loaded = loadPoliciesAtOnce({ version: '1.0', type: 'cedarv1', cedar: { policies, entities_json: '[]' } } as never, 'bench')
if (!loaded.ok) throw new TypeError(loaded.problems.join('; '))

const claims = { sub: 'ada', groups: ['bench'], scope: 'mcp' }
const subject = { subject: 'ada', claims }
const operation = { action: 'call_tool', name: 'echo', visibleName: 'echo', args: { text: 'x' }, hints: undefined } as const

const engine = createRequire(import.meta.url)('@cedar-policy/cedar-wasm/nodejs') as typeof import('@cedar-policy/cedar-wasm/nodejs')
const uid = (type: string, id: string) => ({ type, id })
const facts = { claim_sub: 'ada', claim_scope: 'mcp', claimset_scope: ['mcp'] }
const question = {
  principal: uid('Client', 'ada'),
  action: uid('Action', 'call_tool'),
  resource: uid('Tool', 'echo'),
  context: { ...facts, arg_text: 'x' },
  preparsedPolicySetId: 'bench',
  entities: [
    { uid: uid('Client', 'ada'), attrs: facts, parents: [uid('THVGroup', 'bench')] },
    { uid: uid('Tool', 'echo'), attrs: { name: 'echo', visible_name: 'echo' }, parents: [uid('MCP', 'bench')] },
  ],
}

// The faster of its two ways: policies are parsed once.
if (engine.preparsePolicySet('bench', { staticPolicies: policies.join('\n') }).type !== 'success')
  throw new TypeError('the engine rejects the policies')

function decideByEngine(): void {
  const answer = engine.statefulIsAuthorized(question)
  if (answer.type !== 'success' || answer.response.decision !== 'allow') throw new Error(JSON.stringify(answer))
}

function decideOurselves(): void {
  if (loaded.ok && !loaded.policies.decide(subject, operation).allowed) throw new Error('denied')
}

function timeOf(work: () => void, times: number): number {
  const startedAt = performance.now()
  for (let i = 0; i < times; i++) work()
  return ((performance.now() - startedAt) * 1_000) / times
}

const engineTimes = count > 100 ? 20 : 200
timeOf(decideOurselves, 20_000)
timeOf(decideByEngine, engineTimes)
// The better of several turns: noise only ever adds.
const turns = Array.from({ length: 5 }, () => [timeOf(decideOurselves, 20_000), timeOf(decideByEngine, engineTimes)] as const)
const report: EvaluatorReport = { oursUs: Math.min(...turns.map(([ours]) => ours)), engineUs: Math.min(...turns.map(([, wasm]) => wasm)) }
console.log(JSON.stringify(report))
