import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { json, text } from 'node:stream/consumers'
import { WireClient } from '@thv/gateway/testing/wire-client'
import { freePort } from '@thv/testkit/cluster/process/start-on-port'
import { startFixture } from '@thv/testkit/mcp/fixture'
import { startOidcServer } from '@thv/testkit/oidc/oidc-server'
import { ensurePythonEnv } from '@thv/testkit/python/python-env'
import { expect, it } from 'vitest'
import { spawnReadyRunner } from './testing/runner-process.ts'

/** The reader of the official Python client, which is strict about the text format. */
const READER = `
import json, sys
from prometheus_client.parser import text_string_to_metric_families
families = text_string_to_metric_families(sys.stdin.read())
print(json.dumps([{"name": f.name, "type": f.type, "samples": [[s.name, s.labels, s.value] for s in f.samples]} for f in families]))
`

interface Family {
  readonly name: string
  readonly type: string
  readonly samples: readonly (readonly [string, Readonly<Record<string, string>>, number])[]
}

async function familiesIn(page: string): Promise<Family[]> {
  const { python } = await ensurePythonEnv(['prometheus_client==0.25.0'])
  const reader = spawn(python, ['-c', READER], { stdio: ['pipe', 'pipe', 'pipe'], timeout: 60_000 })
  const [problems, exited] = [text(reader.stderr), once(reader, 'exit')]
  reader.stdin.end(page)
  const families = await json(reader.stdout).catch(async () => Promise.reject(new Error(await problems)))
  expect([(await exited)[0], await problems]).toEqual([0, ''])
  return families as Family[]
}

it('prometheus_client reads the page of a runner with every middleware', async () => {
  await using idp = await startOidcServer()
  await using fixture = await startFixture()
  const port = await freePort()
  const bucket = { maxTokens: 1, refillPeriod: '24h' }
  await using runner = await spawnReadyRunner({
    ...{ remote_url: fixture.url, remote_policy: { allow_loopback: true }, transport: 'streamable-http' },
    oidc_config: { issuer: idp.issuer, audience: 'tests', allow_private_ip: true },
    authz_config: { version: '1.0', type: 'cedarv1', cedar: { policies: ['permit(principal, action, resource);'] } },
    rate_limit_config: { tools: [{ name: 'greet', shared: bucket }] },
    telemetry_config: { prometheus_port: port, enable_prometheus_metrics_path: true },
    audit_config: {},
  })
  const client = new WireClient(runner.url, { authorization: `Bearer ${await idp.token({ claims: { sub: 'ada' } })}` })
  await client.modern('tools/list')
  for (let at = 0; at < 3; at++) await client.modernCall('greet', { name: '"\\\n' })
  for (let at = 0; at < 2; at++) await new WireClient(runner.url).modernCall('echo')
  const page = await (await fetch(`http://127.0.0.1:${port}/metrics`)).text()
  const families = await familiesIn(page)
  const headers = [...page.matchAll(/^# TYPE (\S+) (\S+)$/gm)].map(([, name = '', type]) => [name.replace(/_total$/, ''), type])
  expect(families.map(({ name, type }) => [name, type])).toEqual(headers)
  const samples = families.flatMap((family) => family.samples)
  expect(samples.length).toBe(page.split('\n').filter((line) => line !== '' && !line.startsWith('#')).length)
  const total = (wanted: string, labels: Readonly<Record<string, string>>) =>
    samples
      .filter(([name, own]) => name === wanted && Object.entries(labels).every(([label, value]) => own[label] === value))
      .reduce((sum, [, , value]) => sum + value, 0)
  expect(total('toolhive_mcp_tool_calls_total', { tool: 'greet' })).toBe(3)
  expect(total('toolhive_audit_events_total', {})).toBe(6)
  const histograms = families.filter(({ type }) => type === 'histogram')
  expect(histograms.length).toBeGreaterThan(0)
  for (const { name, samples: own } of histograms) {
    const sum = (suffix: string, more: Readonly<Record<string, string>> = {}) =>
      own
        .filter(
          ([sample, labels]) => sample === `${name}${suffix}` && Object.entries(more).every(([label, value]) => labels[label] === value),
        )
        .reduce((total, [, , value]) => total + value, 0)
    expect([name, sum('_bucket', { le: '+Inf' })]).toEqual([name, sum('_count')])
  }
})
