import type { Static } from 'typebox'
import { unionRules } from '../../schema/cel.ts'
import { map, obj, oneOf, opt } from '../../schema/nodes.ts'
import { externalAuthConfigRef } from '../../shared/workload-fields.ts'

/** How the virtual server proves to its backends who it is. */
export const outgoingAuth = () =>
  obj('Authentication of the virtual server to its backends.', {
    source: opt(
      oneOf(
        'discovered: the virtual server watches the group; inline: the operator writes the backends into its configuration.',
        ['discovered', 'inline'],
        {
          default: 'discovered',
        },
      ),
    ),
    default: opt(backendAuth('Default for backends without an entry in backends.')),
    backends: opt(map('For single backends, by name.', backendAuth('For one backend.'), { maxProperties: 256 })),
  })

export type OutgoingAuth = Static<ReturnType<typeof outgoingAuth>>
export type BackendAuth = NonNullable<OutgoingAuth['default']>

const backendAuth = (description: string) =>
  obj(
    description,
    {
      type: oneOf('discovered: as configured for the backend; external_auth_config_ref is the same as externalAuthConfigRef.', [
        'discovered',
        'externalAuthConfigRef',
        'external_auth_config_ref',
      ]),
      externalAuthConfigRef: opt(externalAuthConfigRef()),
    },
    {
      rules: unionRules('type', {
        externalAuthConfigRef: 'externalAuthConfigRef',
        external_auth_config_ref: 'externalAuthConfigRef',
      }),
    },
  )
