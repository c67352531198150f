import type { Static } from 'typebox'
import { exactlyOne } from '../../schema/cel.ts'
import { int32, list, obj, opt, str } from '../../schema/nodes.ts'

const roleArn = (description: string) =>
  str(description, { maxLength: 2048, pattern: '^arn:(aws|aws-cn|aws-us-gov):iam::[0-9]{12}:role/[A-Za-z0-9_+=,.@/-]+$' })

const claimName = (description: string, fallback: string) => str(description, { minLength: 1, maxLength: 256, default: fallback })

/** Requests signed with temporary AWS credentials of a role. */
export const awsSts = () =>
  obj(
    "Signs requests with temporary AWS credentials, obtained with the caller's token.",
    {
      region: str('AWS region.', { minLength: 1, maxLength: 64, pattern: '^[a-z]{2}(-[a-z]+)+-[0-9]+$' }),
      service: opt(str('Service name in the signature.', { minLength: 1, maxLength: 64, default: 'aws-mcp' })),
      fallbackRoleArn: opt(roleArn('Role when no mapping matches.')),
      roleMappings: opt(
        list(
          'Mapping of callers to roles.',
          obj(
            'One rule that picks a role.',
            {
              claim: opt(str('Value that roleClaim must contain.', { minLength: 1, maxLength: 1024 })),
              matcher: opt(str('CEL expression over the claims.', { minLength: 1, maxLength: 4096 })),
              roleArn: roleArn('Role to assume.'),
              priority: opt(int32('Priority; lower values are tried first, rules without one last.', { minimum: 0 })),
            },
            { rules: [exactlyOne(['claim', 'matcher'], 'set exactly one of claim and matcher')] },
          ),
          { maxItems: 100 },
        ),
      ),
      roleClaim: opt(claimName('Claim that roleMappings match against.', 'groups')),
      sessionNameClaim: opt(claimName('Claim that names the session.', 'sub')),
      sessionDuration: opt(int32('Lifetime of the credentials in seconds.', { minimum: 900, maximum: 43200, default: 3600 })),
      subjectProviderName: opt(
        str("Upstream provider whose token is used instead of the caller's. Needs an embedded authorization server with that provider.", {
          minLength: 1,
          maxLength: 2048,
        }),
      ),
    },
    {
      rules: [
        {
          rule: 'has(self.fallbackRoleArn) || (has(self.roleMappings) && size(self.roleMappings) > 0)',
          message: 'set fallbackRoleArn, roleMappings (not empty) or both',
        },
      ],
    },
  )

export type AwsSts = Static<ReturnType<typeof awsSts>>

export interface CanonicalAwsSts {
  region: string
  service: string
  fallbackRoleArn?: string
  roleMappings: NonNullable<AwsSts['roleMappings']>
  roleClaim: string
  sessionNameClaim: string
  sessionDuration: number
  subjectProviderName?: string
}

export function normaliseAwsSts(value: AwsSts): CanonicalAwsSts {
  return {
    ...value,
    service: value.service ?? 'aws-mcp',
    roleMappings: value.roleMappings ?? [],
    roleClaim: value.roleClaim ?? 'groups',
    sessionNameClaim: value.sessionNameClaim ?? 'sub',
    sessionDuration: value.sessionDuration ?? 3600,
  }
}
