import type { Static } from 'typebox'
import { unionRules } from '../../schema/cel.ts'
import { map, obj, oneOf, opt } from '../../schema/nodes.ts'
import { externalAuthConfigRef } from '../../shared/workload-fields.ts'

/** How the virtual server proves to its backends who it is. */
export const outgoingAuth = () =>
  obj('How the virtual server authenticates to its backends.', {
    source: opt(
      oneOf(
        'discovered: it watches the group itself; inline: the operator writes the backends into its configuration.',
        ['discovered', 'inline'],
        {
          default: 'discovered',
        },
      ),
    ),
    default: opt(backendAuth('For backends that are not named below.')),
    backends: opt(map('For single backends, by name.', backendAuth('For one backend.'), { maxProperties: 256 })),
  })

export type OutgoingAuth = Static<ReturnType<typeof outgoingAuth>>
export type BackendAuth = NonNullable<OutgoingAuth['default']>

const backendAuth = (description: string) =>
  obj(
    description,
    {
      type: oneOf('discovered: as the backend itself says; external_auth_config_ref is the same as externalAuthConfigRef.', [
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
