import { execFile } from 'node:child_process'
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { bearerToken, createKubeClient } from '@thv/kube'
import { writeKubeconfig } from '@thv/testkit/cluster/identity/credentials'
import { describeCluster, sharedCluster, testNamespace } from '@thv/testkit/cluster/test-cluster'
import { afterAll, beforeAll, expect, it } from 'vitest'
import { statefulSet } from './testing/objects.ts'
import { type OurPlane, startOurPlane } from './testing/our-plane.ts'
import { createStage, runKubelet, type StageOptions } from './testing/stage.ts'

/** One story. Of what `rollout status` says only the end is compared: how it gets there is a matter of time. */
const STORY = [
  'create deployment web --image=app:v1 --replicas=3',
  'rollout status deployment/web --timeout=120s',
  'rollout history deployment/web',
  'set image deployment/web app=app:v2',
  'rollout status deployment/web --timeout=120s',
  'annotate deployment/web kubernetes.io/change-cause=second',
  'rollout status deployment/web --timeout=120s',
  'get deployment web -o jsonpath={.metadata.generation}{.status.observedGeneration}{.metadata.annotations}',
  'rollout history deployment/web',
  'rollout undo deployment/web',
  'rollout status deployment/web --timeout=120s',
  'rollout history deployment/web',
  'rollout undo deployment/web --to-revision=9',
  'rollout pause deployment/web',
  'rollout pause deployment/web',
  'rollout restart deployment/web',
  'rollout undo deployment/web',
  'rollout resume deployment/web',
  'rollout restart deployment/web',
  'rollout status deployment/web --timeout=120s',
  'scale deployment/web --replicas=1',
  'wait --for=jsonpath={.status.replicas}=1 deployment/web --timeout=120s',
  'wait --for=condition=Available deployment/web --timeout=120s',
  'get deployment web -o jsonpath={.metadata.generation}{.metadata.annotations}{.status.replicas}{.status.updatedReplicas}',
  'apply -f SET',
  'rollout status statefulset/web --timeout=120s',
  'set image statefulset/web main=app:v2',
  'rollout status statefulset/web --timeout=120s',
  'rollout history statefulset/web',
  'rollout undo statefulset/web',
  'rollout status statefulset/web --timeout=120s',
  'rollout history statefulset/web',
  'get controllerrevisions -o custom-columns=NAME:.metadata.name,REVISION:.revision',
  'get statefulset web -o jsonpath={.metadata.generation}{.status}',
  'get pods -l statefulset.kubernetes.io/pod-name -o jsonpath={.items[*].metadata.name}{.items[*].metadata.labels}',
]

describeCluster('kubectl rollout', () => {
  const folder = mkdtempSync(join(tmpdir(), 'thv-rollout-'))
  const set = join(folder, 'set.json')
  let plane: OurPlane

  beforeAll(async () => {
    writeFileSync(set, JSON.stringify(statefulSet()))
    plane = await startOurPlane()
  })
  afterAll(async () => {
    await plane[Symbol.asyncDispose]()
    rmSync(folder, { recursive: true })
  })

  it('says the same on both', async () => {
    const real = sharedCluster()
    const client = createKubeClient({ server: real.url, auth: bearerToken(real.adminToken), tls: { ca: real.caPem } })
    const theirs = tell({ client, namespace: await testNamespace('rollout') }, real.kubeconfigPath)
    const { url, caPem, adminToken } = plane.server
    const kubeconfig = join(folder, 'kubeconfig')
    await writeKubeconfig(kubeconfig, { url, caPem, token: adminToken })
    const ours = tell(await plane.stage('kubectl-story'), kubeconfig)
    expect(await ours).toEqual(await theirs)
    await client.close()
  })

  async function tell(options: StageOptions, kubeconfig: string): Promise<string[]> {
    const stage = createStage(options)
    stage.kubelet = () => true
    const stop = new AbortController()
    const kubelet = runKubelet(stage, stop.signal)
    const said: string[] = []
    for (const command of STORY) {
      const args = ['--kubeconfig', kubeconfig, '-n', stage.namespace, ...command.replace('SET', set).split(' ')]
      const output = await kubectl(args)
      said.push(`${command}: ${command.includes('status') ? output.trim().split('\n').at(-1) : output}`)
    }
    stop.abort()
    await kubelet
    return said.map((text) => text.replaceAll(stage.namespace, 'NAMESPACE').replace(/"kubectl.kubernetes.io\/restartedAt":"[^"]*"/g, ''))
  }
})

function kubectl(args: readonly string[]): Promise<string> {
  return new Promise((resolve) => {
    execFile(sharedCluster().kubectlPath, args, { timeout: 150_000 }, (_, stdout, stderr) => resolve(stdout + stderr))
  })
}
