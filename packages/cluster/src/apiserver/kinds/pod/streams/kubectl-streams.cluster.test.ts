import { type ChildProcess, spawn } from 'node:child_process'
import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { request } from '@thv/testkit/cluster/http-request'
import { writeKubeconfig } from '@thv/testkit/cluster/identity/credentials'
import { describeCluster, sharedCluster } from '@thv/testkit/cluster/test-cluster'
import { afterEach, beforeEach, expect, it } from 'vitest'
import { type EmbeddedApiServer, startApiServer } from '../../../api-server.ts'
import { type ChildStreams, childStreams } from './testing/child-streams.ts'

const POD = {
  metadata: { name: 'one' },
  spec: { nodeName: 'here', automountServiceAccountToken: false, containers: [{ name: 'c', image: 'x', stdin: true }] },
}
const RUNNING = { status: { phase: 'Running', conditions: [{ type: 'Ready', status: 'True' }] } }

/** Here because it needs kubectl; the real control plane of the tests has no node. */
describeCluster('kubectl and the streams of pods', () => {
  const errors: unknown[] = []
  let server: EmbeddedApiServer
  let folder: string
  let streams: ChildStreams

  beforeEach(async () => {
    folder = mkdtempSync(join(tmpdir(), 'thv-kubectl-'))
    server = await startApiServer({ onError: (error) => errors.push(error) })
    await writeKubeconfig(join(folder, 'kubeconfig'), { url: server.url, caPem: server.caPem, token: server.adminToken })
    await send('POST', '/api/v1/namespaces/default/serviceaccounts', { metadata: { name: 'default' } })
    expect(await send('POST', '/api/v1/namespaces/default/pods', POD)).toBe(201)
    expect(await send('PATCH', '/api/v1/namespaces/default/pods/one/status', RUNNING, 'application/merge-patch+json')).toBe(200)
    streams = childStreams('/bin/sh', ['-c', 'while read x; do echo "got $x"; done; echo bye; echo problem >&2'])
    server.servePods(streams)
  })
  afterEach(async () => {
    streams.child.kill('SIGKILL')
    await server.close()
    rmSync(folder, { recursive: true, force: true })
    expect(errors.splice(0)).toEqual([])
  })

  async function send(method: string, path: string, body: object, type = 'application/json'): Promise<number> {
    const headers = { authorization: `Bearer ${server.adminToken}`, 'content-type': type }
    return (await request(`${server.url}${path}`, { method, body, caPem: server.caPem, headers })).status
  }
  const start = (command: string) => {
    const args = ['--kubeconfig', join(folder, 'kubeconfig'), '--cache-dir', join(folder, 'cache'), ...command.split(' ')]
    return spawn(sharedCluster().kubectlPath, args, { timeout: 60_000 })
  }
  const run = (command: string, input = '') => outcome(start(command), input)

  it('logs, also while they are written', async () => {
    expect(await run('logs one')).toEqual({ status: 0, stdout: 'one\ntwo\n', stderr: '' })
    expect(await run('logs one --tail=3 --since=1h --timestamps -c c')).toMatchObject({ status: 0 })
    expect(streams.asked.at(-1)).toMatchObject({ tailLines: 3, timestamps: true, since: expect.any(Number) })
    const following = start('logs one -f')
    const ended = outcome(following)
    streams.child.stdin?.write('a\n')
    await new Promise((resolve) => following.stdout?.once('data', resolve))
    streams.child.stdin?.end('b\n')
    expect(await ended).toEqual({ status: 0, stdout: 'got a\ngot b\nbye\n', stderr: '' })
  })

  it('attach with input to its end', async () => {
    expect(await run('attach one -i -q', 'hello\nworld')).toEqual({ status: 0, stdout: 'got hello\nbye\n', stderr: 'problem\n' })
    await expect.poll(() => streams.attached, { timeout: 10_000 }).toBe(0)
  })

  it.each([
    ['logs one -c zz', 'error: container zz is not valid for pod one'],
    ['logs one --previous', 'Error from server (BadRequest): previous terminated container "c" in pod "one" not found'],
    ['exec one -- ls', 'Error from server (NotImplemented): pods/exec is not implemented by this server'],
    ['port-forward pod/one 0:80', 'pods/portforward is not implemented by this server'],
    [
      'auth can-i get pods',
      'Error from server (NotImplemented): selfsubjectaccessreviews.authorization.k8s.io is not implemented by this server',
    ],
  ])('read well when refused: %s', async (command, message) => {
    const { status, stderr } = await run(command)
    expect([status, stderr]).toEqual([1, expect.stringContaining(message)])
  })

  it('auth whoami', async () => {
    expect((await run('auth whoami')).stdout).toMatch(/Username +admin\nGroups +\[system:masters system:authenticated\]/)
  })

  it('read well when there is no node', async () => {
    server.servePods(undefined)
    const message = 'is not implemented by this server while it has no node that runs pods'
    expect((await run('logs one')).stderr).toBe(`Error from server (NotImplemented): pods/log ${message}\n`)
    expect((await run('attach one -i -q')).stderr).toContain(`pods/attach ${message}`)
  })
})

interface Outcome {
  readonly status: number | null
  readonly stdout: string
  readonly stderr: string
}

function outcome(child: ChildProcess, input = ''): Promise<Outcome> {
  const text = { stdout: '', stderr: '' }
  for (const name of ['stdout', 'stderr'] as const)
    child[name]?.setEncoding('utf8').on('data', (chunk: string) => {
      text[name] += chunk
    })
  child.stdin?.end(input)
  return new Promise((resolve, reject) => {
    child.on('error', reject).on('close', (status) => resolve({ status, ...text }))
  })
}
