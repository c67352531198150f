import { compileTemplate, render } from '@thv/workflow/template'
import { type Figure, median } from '../figure.ts'
import type { Subject } from '../proxy/subjects.ts'
import { startVmcp, vmcpConfig } from './subjects.ts'
import { callModern } from './wire-session.ts'

const WIDTH = 5
const LANES = 4
const RENDERINGS = 20_000

/** Two rows of five steps; each of the second waits for one of the first. */
const TEN_STEPS = {
  name: 'ten_steps',
  description: 'Ten calls.',
  parameters: { type: 'object', properties: { text: { type: 'string' } } },
  steps: Array.from({ length: 2 * WIDTH }, (_, i) => ({
    ...{
      id: `s${i}`,
      tool: 'one.echo',
      arguments: { text: i < WIDTH ? '{{.params.text}}' : `{{.steps.s${i - WIDTH}.output.text}} again` },
    },
    ...(i >= WIDTH && { dependsOn: [`s${i - WIDTH}`] }),
  })),
}

/** A workflow of ten steps against the same ten calls through the same virtual server, in the same order, by a client. */
export async function measureWorkflow({ modern, rounds, durationMs }: WorkflowOptions): Promise<Figure[]> {
  await using vmcp = await startVmcp({ ...vmcpConfig({ one: modern.url }), compositeTools: [TEN_STEPS] })
  const row = () => Promise.all(Array.from({ length: WIDTH }, () => callModern(vmcp.url, 'echo', 'hello')))
  const byHand = async () => {
    await row()
    await row()
  }
  const asOne = () => callModern(vmcp.url, TEN_STEPS.name, 'hello')
  for (const each of [byHand, asOne]) await repeat(vmcp, each, durationMs)
  const samples = { byHand: [] as Repeated[], asOne: [] as Repeated[] }
  for (let round = 0; round < rounds; round++) {
    samples.byHand.push(await repeat(vmcp, byHand, durationMs))
    samples.asOne.push(await repeat(vmcp, asOne, durationMs))
  }
  const of = (who: keyof typeof samples, what: keyof Repeated) => median(samples[who].map((sample) => sample[what]))
  const aim = { of: 'ratio', limit: 1.5 } as const
  return [
    {
      name: 'CPU of a workflow of 10 steps, against its calls by hand',
      unit: 'µs',
      value: of('asOne', 'cpuUs'),
      baseline: of('byHand', 'cpuUs'),
      aim,
    },
    {
      name: 'time of a workflow of 10 steps, against its calls by hand',
      unit: 'ms',
      value: of('asOne', 'ms'),
      baseline: of('byHand', 'ms'),
      aim,
    },
    ...measureTemplate(),
  ]
}

export interface WorkflowOptions {
  readonly modern: Subject
  readonly rounds: number
  readonly durationMs: number
}

interface Repeated {
  readonly cpuUs: number
  readonly ms: number
}

async function repeat({ process: child }: Subject, work: () => Promise<void>, durationMs: number): Promise<Repeated> {
  const before = await child.usage()
  const endsAt = performance.now() + durationMs
  const times: number[] = []
  const lane = async () => {
    do {
      const startedAt = performance.now()
      await work()
      times.push(performance.now() - startedAt)
    } while (performance.now() < endsAt)
  }
  await Promise.all(Array.from({ length: LANES }, lane))
  return { cpuUs: ((await child.usage()).cpuUs - before.cpuUs) / times.length, ms: median(times) }
}

/** A template as composite tools have them, against writing its result as JSON. */
function measureTemplate(): Figure[] {
  const template = compileTemplate('{{range .steps.find.output.items}}{{.name}}: {{.count}}\n{{end}}of {{.params.text}}')
  const items = Array.from({ length: 10 }, (_, i) => ({ name: `item ${i}`, count: i }))
  const root = { params: { text: 'hello' }, steps: { find: { output: { items } } } }
  const text = render(template, root)
  const perRun = (work: () => unknown) => {
    for (let i = 0; i < RENDERINGS / 10; i++) work()
    const startedAt = performance.now()
    for (let i = 0; i < RENDERINGS; i++) work()
    return ((performance.now() - startedAt) * 1_000) / RENDERINGS
  }
  const [value, baseline] = [perRun(() => render(template, root)), perRun(() => JSON.stringify({ text, items }))]
  return [{ name: 'a template with a loop of ten, against JSON.stringify of its data and result', unit: 'µs', value, baseline }]
}
