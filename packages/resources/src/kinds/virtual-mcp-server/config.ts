import type { Static } from 'typebox'
import { bool, duration, int32, list, obj, opt, rejected, str, stringMap } from '../../schema/nodes.ts'
import { compositeTool } from '../../shared/composite/composite-tool.ts'
import { HEADER_NAME_PATTERN, MANAGED_HEADERS } from '../../shared/http-header.ts'
import { rateLimiting } from '../../shared/rate-limiting.ts'
import { nameRef } from '../../shared/references.ts'
import { aggregation } from './aggregation.ts'
import { fileIncomingAuth } from './incoming-auth.ts'
import { fileAudit, fileTelemetry } from './observability.ts'
import { operational } from './operational.ts'
import { optimizer } from './optimizer.ts'
import { rejectedList } from './rejected-nodes.ts'
import { UNSUPPORTED } from './unsupported.ts'

/** The behavior of the virtual server, in the words of its configuration file. */
export const config = () =>
  obj('Configuration of the virtual server, as in its configuration file.', {
    name: opt(str('May only repeat metadata.name.', { maxLength: 253 })),
    groupRef: opt(str('Older spelling of spec.groupRef.', { minLength: 1, maxLength: 253 })),
    incomingAuth: opt(fileIncomingAuth()),
    aggregation: opt(aggregation()),
    compositeTools: opt(
      list('Tools composed of calls to other tools.', compositeTool('One composite tool.'), { merge: ['name'], maxItems: 64 }),
    ),
    compositeToolRefs: opt(compositeToolRefs('Other spelling of spec.compositeToolRefs; both lists are joined.')),
    operational: opt(operational()),
    tokenCache: opt(tokenCache()),
    workflows: opt(workflows()),
    bridge: opt(bridge()),
    rateLimiting: opt(rateLimiting('Rate limits. Several replicas need Redis as session storage.')),
    optimizer: opt(optimizer()),
    audit: opt(fileAudit()),
    telemetry: opt(fileTelemetry()),
    passthroughHeaders: opt(passthroughHeaders('Other spelling of spec.passthroughHeaders.')),
    metadata: opt(stringMap('Your own notes; they are written into the configuration file.', { maxProperties: 64 })),
    backends: opt(rejectedList(UNSUPPORTED['config.backends'])),
    outgoingAuth: opt(rejected(UNSUPPORTED['config.outgoingAuth'])),
    sessionStorage: opt(rejected(UNSUPPORTED['config.sessionStorage'])),
    codeMode: opt(rejected(UNSUPPORTED['config.codeMode'])),
  })

export type Config = Static<ReturnType<typeof config>>

export const compositeToolRefs = (description: string) =>
  list(description, nameRef('A VirtualMCPCompositeToolDefinition.'), { merge: ['name'], maxItems: 64 })

/** Credentials of the caller never travel on by themselves: that is what outgoingAuth is for. */
export const passthroughHeaders = (description: string) =>
  list(description, str('Name of a header.', { minLength: 1, maxLength: 255, pattern: HEADER_NAME_PATTERN }), {
    maxItems: 64,
    rules: [
      {
        rule: `self.all(h, !(h.lowerAscii() in [${[...MANAGED_HEADERS, 'authorization', 'cookie'].map((name) => `'${name}'`).join(',')}]))`,
        message:
          'these headers are never passed on: Authorization, Cookie, hop-by-hop, Forwarded, X-Forwarded-*, Content-* and MCP headers',
      },
    ],
  })

const workflows = () =>
  obj('Settings of all composite tools.', {
    authorizeSteps: opt(bool('Whether policies judge every step, not the composite tool alone.', { default: false })),
    maxParallelSteps: opt(
      int32('Maximum number of steps of one call that run at the same time.', { minimum: 1, maximum: 100, default: 10 }),
    ),
  })

const bridge = () =>
  obj('Clients and backends of different eras.', {
    parkedCalls: opt(
      bool(
        'Whether a call to a legacy backend stays open while a modern client answers what the backend asks. Without it such a call fails.',
        {
          default: true,
        },
      ),
    ),
  })

const tokenCache = () =>
  obj('Cache of tokens for backends.', {
    enabled: opt(bool('Enables the cache.', { default: true })),
    maxEntries: opt(int32('Maximum number of tokens.', { minimum: 1, maximum: 1000000, default: 10000 })),
    ttlOffset: opt(duration('Time before its expiry at which a token is replaced.', { default: '60s' })),
  })
