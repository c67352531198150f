import { spawnSync } from 'node:child_process'
import { copyFileSync, mkdtempSync, readFileSync, rmSync, symlinkSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { isAbsolute, join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { adminClient, installCrds } from '@thv/resources/testing/install-crds'
import { describeCluster, sharedCluster, testNamespace } from '@thv/testkit/cluster/test-cluster'
import { afterAll, beforeAll, expect, it } from 'vitest'

/* The shell commands of the page, one block after the other, as a reader enters them at the root of the repository. */

const ROOT = fileURLToPath(new URL('../', import.meta.url))

describeCluster('docs/how-to/one-person-many-saas-tokens.md', () => {
  const folder = mkdtempSync(join(tmpdir(), 'thv-login-pages-'))
  const env = { ...process.env, KUBECONFIG: join(folder, 'config'), PATH: `${folder}:${process.env['PATH']}` }
  const run = (commands: string) => spawnSync('sh', ['-e', '-c', commands], { cwd: ROOT, env, encoding: 'utf8', timeout: 60_000 })

  beforeAll(async () => {
    const { kubectlPath, kubeconfigPath } = sharedCluster()
    const client = adminClient(sharedCluster())
    await installCrds(client)
    await client.close()
    if (isAbsolute(kubectlPath)) symlinkSync(kubectlPath, join(folder, 'kubectl'))
    copyFileSync(kubeconfigPath, join(folder, 'config'))
  })
  afterAll(() => rmSync(folder, { recursive: true }))

  it('every command does what the page says', async () => {
    // Of this try alone: the page creates its Secrets.
    const namespace = await testNamespace('login-pages')
    expect(run(`kubectl config set-context --current --namespace ${namespace}`).status).toBe(0)
    const page = readFileSync(join(ROOT, 'docs/how-to/one-person-many-saas-tokens.md'), 'utf8')
    const blocks = [...page.matchAll(/^```sh\n([\s\S]*?)^```/gm)].map(([, commands = '']) => commands)
    expect(blocks).toHaveLength(2)
    const outputs = blocks.map((commands) => {
      const { status, stdout, stderr } = run(commands)
      expect([status, stderr]).toEqual([0, ''])
      return stdout
    })
    for (const name of ['company-sso', 'tickets-app', 'chat-app']) expect(outputs[0]).toContain(`secret/${name} created`)
    expect(outputs[1]).toContain('virtualmcpserver.toolhive.stacklok.dev/all-my-tools created')
    expect(outputs[1]).toMatch(/^NAME .*\n(.*\n)*all-my-tools /m)
  })
})
