import { normaliseTelemetryConfig, type TelemetryConfig } from '@thv/resources/shared/telemetry-config'
import { telemetry as telemetries } from '@thv/resources/testing/workload-arbitraries'
import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { resolveTelemetry } from './telemetry.ts'
import { blockersOf, contributionOf, runnerReads } from './testing/snapshot.ts'

const resolve = (telemetry: TelemetryConfig) =>
  resolveTelemetry({ telemetry: normaliseTelemetryConfig(telemetry), name: 'x', namespace: 'team' })

describe('resolveTelemetry', () => {
  it('adds nothing unless something is enabled', () => {
    expect(contributionOf(resolve({}))).toEqual({})
    expect(contributionOf(resolve({ openTelemetry: { endpoint: 'otel:4318', tracing: { enabled: true } } }))).toEqual({})
  })

  it('sends to the collector what is asked for', () => {
    const { runConfig, env } = contributionOf(
      resolve({
        openTelemetry: {
          enabled: true,
          endpoint: 'https://otel.monitoring.svc:4318/',
          headers: ['x-team=a=b', 'X-Empty='],
          insecure: true,
          metrics: { enabled: true },
          tracing: { enabled: true, samplingRate: '0.5' },
          useLegacyAttributes: false,
        },
        prometheus: { enabled: true },
      }),
    )
    expect(runConfig).toEqual({
      telemetry_config: {
        endpoint: 'otel.monitoring.svc:4318',
        service_name: 'x',
        tracing_enabled: true,
        metrics_enabled: true,
        sampling_rate: '0.5',
        headers: { 'x-team': 'a=b', 'X-Empty': '' },
        insecure: true,
        enable_prometheus_metrics_path: true,
        metrics_on_transport_port: true,
        environment_variables: [],
        custom_attributes: {},
        use_legacy_attributes: false,
      },
    })
    expect(env).toEqual([{ name: 'OTEL_RESOURCE_ATTRIBUTES', value: 'service.name=x,service.namespace=team' }])
  })

  it('has Prometheus alone when only that is enabled, and nothing of a collector that is off', () => {
    const { runConfig, env } = contributionOf(
      resolve({ prometheus: { enabled: true }, openTelemetry: { endpoint: 'otel:4318', headers: ['a=b'], tracing: { enabled: true } } }),
    )
    expect(runConfig?.telemetry_config).toMatchObject({ enable_prometheus_metrics_path: true, tracing_enabled: false, headers: {} })
    expect(runConfig?.telemetry_config).not.toHaveProperty('endpoint')
    expect(env).toEqual([])
  })

  it('escapes what would be more than one attribute, or a variable of the kubelet', () => {
    const { env } = contributionOf(resolve({ openTelemetry: { enabled: true, serviceName: 'a,b=$(HOME)' } }))
    expect(env?.[0]?.value).toBe('service.name=a%2Cb%3D%24(HOME),service.namespace=team')
  })

  it.each([
    ['an endpoint and nothing to send', { endpoint: 'otel:4318' }, /endpoint is of no use/],
    ['an endpoint with a password', { endpoint: 'http://me:hunter2@otel', tracing: { enabled: true } }, /must not carry a user name/],
    ['an endpoint that is none', { endpoint: 'https://', tracing: { enabled: true } }, /must be the host and port/],
    ['an endpoint of another scheme', { endpoint: 'grpc://otel', tracing: { enabled: true } }, /must be the host and port/],
    ['a header that is none', { headers: ['hunter2'] }, /headers\[0\] must be NAME=VALUE/],
    ['a header of two lines', { headers: ['a=hunter2\r\nb: c'] }, /headers\[0\] must be NAME=VALUE/],
    ['a header twice', { headers: ['a=1', 'A=hunter2'] }, /headers\[1\] sets A a second time/],
  ])('refuses %s', (_, openTelemetry, message) => {
    const blockers = blockersOf(resolve({ openTelemetry: { enabled: true, ...openTelemetry } }))
    expect(blockers).toEqual([{ condition: 'ConfigurationValid', reason: 'InvalidSpec', message: expect.stringMatching(message) }])
    expect(JSON.stringify(blockers)).not.toContain('hunter2')
  })

  it('whatever is asked for: it is blocked with a reason, or the runner reads it', () => {
    fc.assert(
      fc.property(telemetries, (telemetry) => {
        const resolved = resolveTelemetry({ telemetry, name: 'x', namespace: 'team' })
        if (resolved.ok) runnerReads(resolved.contribution)
        else expect(resolved.blockers.length).toBeGreaterThan(0)
      }),
    )
  })
})
