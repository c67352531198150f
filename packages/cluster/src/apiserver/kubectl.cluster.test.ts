import { spawn } from 'node:child_process'
import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { apiRequest, request } from '@thv/testkit/cluster/http-request'
import { writeKubeconfig } from '@thv/testkit/cluster/identity/credentials'
import { describeCluster, sharedCluster, testNamespace } from '@thv/testkit/cluster/test-cluster'
import { afterAll, beforeAll, expect, it } from 'vitest'
import { type EmbeddedApiServer, startApiServer } from './api-server.ts'
import { widgetDefinition } from './parity/custom-rows.ts'

interface Outcome {
  readonly status: number | null
  readonly stdout: string
  readonly stderr: string
}

/** A definition of its own, under names of its own: the table of requests works on the other. */
const DEFINITION = JSON.parse(
  JSON.stringify(widgetDefinition)
    .replaceAll('parity.example.com', 'kubectl.example.com')
    .replaceAll('widget', 'doodad')
    .replaceAll('Widget', 'Doodad')
    .replaceAll('"wg"', '"dd"')
    .replaceAll('"toys"', '"baubles"'),
) as typeof widgetDefinition

const DOODAD = {
  apiVersion: 'kubectl.example.com/v1',
  kind: 'Doodad',
  metadata: { name: 'w' },
  spec: { size: 3, replicas: 1 },
}
const MAP = { apiVersion: 'v1', kind: 'ConfigMap', metadata: { name: 'm', labels: { a: 'b' } }, data: { key: 'value' } }

/** Each command must do and say the same on both; in this order, as one story. `-f -` takes the object from the right. */
const STORY: readonly (readonly [command: string, input?: object])[] = [
  ['create -f -', MAP],
  ['create -f -', MAP],
  ['get configmap m'],
  ['get cm m -o name'],
  ['get cm -l a=b -o jsonpath={.items[*].data.key}'],
  ['get configmap missing'],
  ['get nothings'],
  // kubectl asks for OpenAPI v2 before it says that there is no such kind.
  ['apply -f -', { apiVersion: 'kubectl.example.com/v1', kind: 'Dooodad', metadata: { name: 'typo' }, spec: {} }],
  ['create -f -', { apiVersion: 'apps/v1', kind: 'Deploymnt', metadata: { name: 'typo' } }],
  ['apply --server-side -f -', { apiVersion: 'nowhere.example.com/v1', kind: 'Thing', metadata: { name: 'typo' } }],
  ['label configmap m x=y'],
  ['label configmap m x=z'],
  ['label configmap m x=z --overwrite'],
  ['label configmap m x-'],
  ['annotate configmap m note=hello'],
  ['patch configmap m --type=merge -p {"data":{"key":"other"}}'],
  ['get configmap m -o jsonpath={.data.key}{.metadata.labels}{.metadata.annotations.note}'],
  ['replace -f -', { ...MAP, data: { key: 'third' } }],
  ['get configmap m -o jsonpath={.data.key}'],
  ['apply -f -', { ...MAP, metadata: { name: 'applied' } }],
  ['apply -f -', { ...MAP, metadata: { name: 'applied' } }],
  ['apply -f -', { ...MAP, metadata: { name: 'applied', labels: { c: 'd' } }, data: { other: 'value' } }],
  ['get configmap applied -o jsonpath={.data}{.metadata.labels}'],
  ['patch configmap applied -p {"data":{"more":"x"}}'],
  ['patch configmap applied --type=json -p [{"op":"remove","path":"/data/more"}]'],
  ['apply --server-side --field-manager=someone -f -', { ...MAP, metadata: { name: 'ssa' } }],
  ['apply --server-side --field-manager=other -f -', { ...MAP, metadata: { name: 'ssa' }, data: { key: 'other' } }],
  ['apply --server-side --field-manager=other --force-conflicts -f -', { ...MAP, metadata: { name: 'ssa' }, data: { key: 'other' } }],
  ['get configmap ssa -o jsonpath={.data}'],
  ['apply --server-side -f -', { ...MAP, metadata: { name: 'applied', labels: { c: 'd' } }, data: { other: 'value' } }],
  ['diff -f -', { ...MAP, metadata: { name: 'ssa' }, data: { key: 'other' } }],
  ['delete configmap m'],
  ['delete configmap m --ignore-not-found'],
  ['delete configmap applied'],
  ['wait --for=condition=Established --timeout=20s crd/doodads.kubectl.example.com'],
  ['apply -f -', DOODAD],
  ['get doodads'],
  ['get dd w -o wide'],
  ['get baubles -o name'],
  ['apply -f -', { ...DOODAD, spec: { size: 3, colour: 'green', replicas: 1 } }],
  ['apply -f -', { ...DOODAD, spec: { size: 3, colour: 'blue' } }],
  ['apply -f -', { ...DOODAD, spec: { size: 3, unknown: 1 } }],
  ['get doodad w -o jsonpath={.spec}{.metadata.generation}'],
  ['scale doodad w --replicas=4'],
  ['get doodad w -o jsonpath={.spec.replicas}'],
  ['patch doodad w --subresource=status --type=merge -p {"status":{"phase":"Ready"}}'],
  ['wait --for=jsonpath={.status.phase}=Ready --timeout=20s doodad/w'],
  ['get doodads'],
  ['explain doodad.spec.size'],
  ['annotate doodad w note=edited-before'],
  ['edit doodad w'],
  ['get doodad w -o jsonpath={.metadata.annotations.note}'],
  ['delete doodad w'],
  ['get doodads'],
  // Objects that kubectl makes by itself are sent as protobuf.
  ['create configmap made --from-literal=a=b --from-literal=empty='],
  ['create configmap made --from-literal=a=b'],
  ['create configmap bad_name --from-literal=a=b'],
  ['get configmap made -o jsonpath={.data}'],
  ['create configmap edited --from-literal=a=edited-before'],
  ['edit configmap edited'],
  ['get configmap edited -o jsonpath={.data}'],
  ['edit configmap edited'],
  ['edit configmap nowhere'],
  ['create secret generic made --from-literal=a=b'],
  ['get secret made -o jsonpath={.data}{.type}'],
  ['create ns {ns}-more'],
  ['create sa robot'],
  ['create deployment web --image=example.com/x:1 --replicas=0 --port=80'],
  ['get deployment web -o jsonpath={.spec.replicas}{.spec.strategy}{.spec.template.spec.containers}{.metadata.labels}'],
  ['create role reader --verb=get,list --resource=pods,deployments.apps --resource-name=x'],
  ['get role reader -o jsonpath={.rules}'],
  ['create rolebinding reading --role=reader --serviceaccount=default:robot --user=someone'],
  ['get rolebinding reading -o jsonpath={.roleRef}{.subjects}'],
  ['create service clusterip front --tcp=80:8080 --tcp=443'],
  ['get service front -o jsonpath={.spec.ports}{.spec.selector}{.spec.type}'],
  ['create service externalname out --external-name=example.com'],
  ['create token robot'],
  ['create token robot --duration=5m'],
  ['create token robot --bound-object-kind=Secret --bound-object-name=missing'],
  ['create token robot --bound-object-kind=Secret --bound-object-name=made'],
  ['create token nobody'],
  ['create configmap tried --from-literal=a=b --dry-run=server -o jsonpath={.data}'],
  ['get configmap tried'],
]

describeCluster('kubectl on the embedded API server', () => {
  let server: EmbeddedApiServer
  let folder: string
  let namespace: string
  const errors: unknown[] = []

  beforeAll(async () => {
    const real = sharedCluster()
    folder = mkdtempSync(join(tmpdir(), 'thv-kubectl-'))
    server = await startApiServer({ onError: (error) => errors.push(error) })
    await writeKubeconfig(join(folder, 'kubeconfig'), { url: server.url, caPem: server.caPem, token: server.adminToken })
    namespace = await testNamespace('kubectl')
    const headers = { authorization: `Bearer ${server.adminToken}` }
    const crds = '/apis/apiextensions.k8s.io/v1/customresourcedefinitions'
    await apiRequest(real, crds, { method: 'POST', body: DEFINITION })
    const made = await request(`${server.url}${crds}`, { method: 'POST', body: DEFINITION, caPem: server.caPem, headers })
    expect(made.status).toBe(201)
    await request(`${server.url}/api/v1/namespaces`, {
      method: 'POST',
      body: { metadata: { name: namespace } },
      caPem: server.caPem,
      headers,
    })
  })
  afterAll(async () => {
    await apiRequest(sharedCluster(), '/apis/apiextensions.k8s.io/v1/customresourcedefinitions/doodads.kubectl.example.com', {
      method: 'DELETE',
    })
    await server?.close()
    rmSync(folder, { recursive: true, force: true })
    expect(errors).toEqual([])
  })

  it.each(STORY.map(([command, input], index) => ({ command, input, index })))('$index $command', async ({ command, input }) => {
    const run = (kubeconfig: string, cache: string) =>
      kubectl(command.replaceAll('{ns}', namespace), { kubeconfig, cache: join(folder, cache), namespace, input })
    const theirs = await run(sharedCluster().kubeconfigPath, 'real')
    const ours = await run(join(folder, 'kubeconfig'), 'ours')
    expect(comparable(ours)).toEqual(comparable(theirs))
  })

  it('get -w', async () => {
    const watch = async (kubeconfig: string, cache: string) => {
      const run = (command: string) => kubectl(command, { kubeconfig, cache: join(folder, cache), namespace, input: undefined })
      await run('create configmap watched --from-literal=a=1')
      const stop = new AbortController()
      const seen = kubectl('get configmaps -w --field-selector=metadata.name=watched', {
        ...{ kubeconfig, cache: join(folder, cache), namespace, input: undefined },
        onOutput: (text) => void (linesOf(text).length >= 4 && stop.abort()),
        signal: stop.signal,
        next: [() => run('patch configmap watched -p {"data":{"b":"2"}}'), () => run('delete configmap watched')],
      })
      return linesOf((await seen).stdout).map((line) => line.replaceAll(/\b\d+s\b/g, '<age>').replaceAll(/ +/g, ' '))
    }
    const theirs = await watch(sharedCluster().kubeconfigPath, 'real')
    expect(theirs).toEqual(['NAME DATA AGE', 'watched 1 <age>', 'watched 2 <age>', 'watched 2 <age>'])
    expect(await watch(join(folder, 'kubeconfig'), 'ours')).toEqual(theirs)
  })
})

interface Run {
  readonly kubeconfig: string
  readonly cache: string
  readonly namespace: string
  readonly input: object | undefined
  /** Hears all whole lines of stdout so far. */
  readonly onOutput?: (text: string) => void
  readonly signal?: AbortSignal
  /** One after the other, each when a further line has come. */
  readonly next?: readonly (() => Promise<unknown>)[]
}

function linesOf(text: string): string[] {
  return text.split('\n').filter((line) => line !== '')
}

function kubectl(command: string, { kubeconfig, cache, namespace, input, ...more }: Run): Promise<Outcome> {
  const args = ['--kubeconfig', kubeconfig, '--cache-dir', cache, '-n', namespace, ...command.split(' ')]
  const child = spawn(sharedCluster().kubectlPath, args, {
    timeout: 60_000,
    env: { ...process.env, KUBE_EDITOR: 'sed -i s/edited-before/edited-after/' },
  })
  more.signal?.addEventListener('abort', () => child.kill('SIGTERM'))
  const next = [...(more.next ?? [])]
  const text = { stdout: '', stderr: '' }
  let lines = 0
  child.stdout.setEncoding('utf8').on('data', (chunk: string) => {
    text.stdout += chunk
    // A line may come in pieces.
    const whole = text.stdout.slice(0, text.stdout.lastIndexOf('\n') + 1)
    if (linesOf(whole).length > Math.max(1, lines)) void next.shift()?.()
    lines = linesOf(whole).length
    more.onOutput?.(whole)
  })
  child.stderr.setEncoding('utf8').on('data', (chunk: string) => {
    text.stderr += chunk
  })
  child.stdin.end(input === undefined ? '' : JSON.stringify(input))
  return new Promise((resolve, reject) => {
    child.on('error', reject).on('close', (status) => resolve({ status, ...text }))
  })
}

/** Ages differ, and with them the width of columns; the real server adds maps of its own. */
function comparable({ status, stdout, stderr }: Outcome): Outcome {
  const plain = (text: string) =>
    text
      .replaceAll(/https:\/\/127\.0\.0\.1:\d+/g, '<server>')
      .replaceAll(/\b\d+s\b/g, '<age>')
      .replaceAll(/\beyJ[\w-]+\.[\w-]+\.[\w-]+/g, '<token>')
      .replace(/Invalid value: "\{.*\}": strict/s, 'Invalid value: <object>: strict')
      .replaceAll(/ +/g, ' ')
  return { status, stdout: plain(stdout), stderr: plain(stderr) }
}
