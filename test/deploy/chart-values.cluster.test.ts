import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { createLifecycle } from '@thv/kernel/lifecycle'
import { describeHelm } from '@thv/testkit/helm/describe-helm'
import { type Helm, openHelm } from '@thv/testkit/helm/helm'
import { afterAll, beforeAll, expect, it } from 'vitest'
import { parse, stringify } from 'yaml'
import { CRD_CHART, GOLDENS, HELM_LIMIT_MS, OPERATOR_CHART, operatorPod, renderOperator } from './charts.ts'

/* The values of the charts: wrong ones are refused, and each one that there is means something. */

describeHelm('values of the charts', () => {
  let helm: Helm
  const folder = mkdtempSync(join(tmpdir(), 'thv-charts-'))
  const defaults = readFileSync(join(OPERATOR_CHART, 'values.yaml'), 'utf8')

  beforeAll(async () => {
    helm = await openHelm()
  }, HELM_LIMIT_MS)
  afterAll(() => rmSync(folder, { recursive: true }))

  it.each(BAD_VALUES)('toolhive-operator refuses %s and names %s', (...row) => refuses(OPERATOR_CHART, row))

  it.each(BAD_CRD_VALUES)('toolhive-operator-crds refuses %s and names %s', (...row) => refuses(CRD_CHART, row))

  async function refuses(chart: string, [setting, field, says]: readonly [string, string, string]): Promise<void> {
    const { code, stderr } = await helm.run(['template', 'x', chart, '--set', setting])
    expect(code).not.toBe(0)
    expect(stderr).toContain(field)
    expect(stderr).toContain(says)
  }

  it('has no value without effect', async () => {
    const all = leavesOf(parse(defaults))
    expect(all.length).toBeGreaterThan(25)
    const idle: string[] = []
    for (const leaf of all) if (!(await hasEffect(leaf))) idle.push(leaf.join('.'))
    expect(idle).toEqual([])
  })

  it('passes on only what the operator knows', async () => {
    const help = await operatorHelp()
    for (const { values } of GOLDENS) {
      const [container] = operatorPod(await renderOperator(helm, values), 'x').spec.containers
      const flags = container?.args?.map((arg) => arg.replace(/=.*/, '')) ?? []
      const variables = container?.env?.map(({ name }) => name) ?? []
      expect(variables).toContain('TOOLHIVE_RUNNER_IMAGE')
      expect([...flags, ...variables].filter((word) => !help.includes(word))).toEqual([])
    }
  })

  it('says in a comment what each value means', () => {
    const lines = defaults.split('\n')
    const silent = lines.filter((line, index) => isLeafLine(line) && !isExplained(lines, index))
    expect(silent).toEqual([])
  })

  /** Whether the output changes, or the values are refused, when one of the goldens does without this value. */
  async function hasEffect(leaf: readonly string[]): Promise<boolean> {
    for (const { values } of GOLDENS.filter((golden) => golden.values.length > 0)) {
      const settings = parse(readFileSync(values[0] ?? '', 'utf8'))
      if (!removeAt(settings, leaf)) continue
      const file = join(folder, 'values.yaml')
      writeFileSync(file, stringify(settings))
      const without = await renderOperator(helm, [file]).catch((error: Error) => error.message)
      if (without !== (await renderOperator(helm, values))) return true
    }
    return false
  }
})

async function operatorHelp(): Promise<string> {
  const { buildProgram } = await import('../../apps/operator/src/program.ts')
  let text = ''
  const out = (more: string) => {
    text += more
  }
  await buildProgram({ out, env: {}, lifecycle: createLifecycle() }).parseAsync(['node', 'thv-operator', '--help'])
  return text
}

/** A setting, the field that the message must name, and what it must say. */
const BAD_VALUES = [
  ['operator.image=', '/operator/image', 'minLength'],
  ['operator.image=two words', '/operator/image', 'pattern'],
  ['operator.imag=x', '/operator', "'imag' not allowed"],
  ['operators.image=x', "at ''", "'operators' not allowed"],
  ['operator.imagePullPolicy=Sometimes', '/operator/imagePullPolicy', 'must be one of'],
  ['operator.imagePullSecrets={A_b}', '/operator/imagePullSecrets/0', 'pattern'],
  ['operator.defaultImagePullSecrets[0].nam=x', '/operator/defaultImagePullSecrets/0', "'nam' not allowed"],
  ['operator.defaultRedis.addr=redis', '/operator/defaultRedis/addr', 'pattern'],
  ['operator.defaultRedis.existingSecret=redis', '/operator/defaultRedis/addr', 'minLength'],
  ['operator.defaultRedis.password=x', '/operator/defaultRedis', "'password' not allowed"],
  ['global.redis.addr=redis', '/global/redis/addr', 'pattern'],
  ['operator.rbac.scope=all', '/operator/rbac/scope', 'must be one of'],
  ['operator.rbac.scope=namespace', '/operator/rbac/allowedNamespaces', 'minItems'],
  ['operator.rbac.allowedNamespaces={team-a}', '/operator/rbac/allowedNamespaces', 'maxItems'],
  ['operator.rbac=null', '/operator', "missing property 'rbac'"],
  ['operator.registry.exportNamespaces={Team_A}', '/operator/registry/exportNamespaces/0', 'pattern'],
  ['operator.registry.exportNamespace={a}', '/operator/registry', "'exportNamespace' not allowed"],
  ['operator.remotes.denyPrivate=maybe', '/operator/remotes/denyPrivate', 'want boolean'],
  ['operator.clusterDomain=Example', '/operator/clusterDomain', 'pattern'],
  ['operator.podSecurity=strict', '/operator/podSecurity', 'must be one of'],
  ['operator.logLevel=loud', '/operator/logLevel', 'must be one of'],
  ['operator.replicaCount=-1', '/operator/replicaCount', 'minimum'],
  ['operator.replicaCount=two', '/operator/replicaCount', 'want integer'],
  ['operator.resources.limits.memory=lots', '/operator/resources/limits/memory', 'pattern'],
  ['operator.nodeSelector=ssd', '/operator/nodeSelector', 'want object'],
  ['operator.tolerations.key=x', '/operator/tolerations', 'want array'],
  ['operator.podAnnotations.a=true', '/operator/podAnnotations/a', 'want string'],
  ['operator.serviceAccount.create=false', '/operator/serviceAccount/name', 'minLength'],
  ['operator.metrics.service.port=1', '/operator/metrics/service', "'port' not allowed"],
  ['operator.packageImages.npx=1', '/operator/packageImages/npx', 'want string'],
  ['operator.packageImages.bunx=x', '/operator/packageImages', "'bunx' not allowed"],
  ['operator.toolhiveRunnerImage=1', '/operator/toolhiveRunnerImage', 'want string'],
  ['fullnameOverride=Operator', '/fullnameOverride', 'pattern'],
] as const

const BAD_CRD_VALUES = [
  ['crds.keep=3', '/crds/keep', 'want boolean'],
  ['crds.kep=true', '/crds', "'kep' not allowed"],
  ['keep=true', "at ''", "'keep' not allowed"],
] as const

/** Paths of the values that hold no further ones. */
function leavesOf(values: unknown, at: readonly string[] = []): string[][] {
  if (!isRecord(values) || Object.keys(values).length === 0 || at.at(-1) === 'requests' || at.at(-1) === 'limits') return [[...at]]
  return Object.entries(values).flatMap(([key, value]) => leavesOf(value, [...at, key]))
}

/** Whether it was there. */
function removeAt(values: unknown, at: readonly string[]): boolean {
  const [key = '', ...rest] = at
  if (!isRecord(values) || !(key in values)) return false
  if (rest.length > 0) return removeAt(values[key], rest)
  delete values[key]
  return true
}

function isRecord(value: unknown): value is Record<string, unknown> {
  return typeof value === 'object' && value !== null && !Array.isArray(value)
}

function isLeafLine(line: string): boolean {
  return /^ *[\w]+: .+$/.test(line)
}

/** By a comment above it, or above the block or the group of lines that it is in. */
function isExplained(lines: readonly string[], index: number): boolean {
  for (let above = index - 1; above >= 0; above -= 1) {
    const line = lines[above] ?? ''
    if (/^ *#/.test(line)) return true
    if (line.trim() === '') return false
  }
  return false
}
