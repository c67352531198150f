import type { Static } from 'typebox'
import { duration, int32, list, map, obj, oneOf, opt, str } from '../../schema/nodes.ts'
import { HEADER_VALUE_PATTERN, namesAreTokens } from '../../shared/http-header.ts'

const NUMBER_PATTERN = '^([0-9]*[.])?[0-9]+$'

const upTo = (limit: number) => [{ rule: `double(self) <= ${limit.toFixed(1)}`, message: `must be between 0 and ${limit}` }]

/** Clients see find_tool and call_tool instead of all tools. */
export const optimizer = () =>
  obj(
    'Tool search: clients see only find_tool and call_tool. Without embeddingService it matches keywords alone.',
    {
      embeddingService: opt(str('URL of the service that turns text into vectors.', { maxLength: 2048, pattern: '^https?://' })),
      embeddingServiceTimeout: opt(duration('Timeout of the service.', { default: '30s' })),
      embeddingProvider: opt(
        oneOf('API of the service. The key for openai comes from the variable OPENAI_API_KEY.', ['tei', 'openai'], { default: 'tei' }),
      ),
      embeddingModel: opt(str('Model of the service.', { minLength: 1, maxLength: 253 })),
      embeddingHeaders: opt(
        map('Headers for the service.', str('The value.', { minLength: 1, maxLength: 8192, pattern: HEADER_VALUE_PATTERN }), {
          maxProperties: 32,
          rules: [
            namesAreTokens,
            {
              rule: "self.all(k, !(k.lowerAscii() in ['authorization', 'content-type']))",
              message: 'Authorization and Content-Type are set by the server itself: set the key in the variable OPENAI_API_KEY',
            },
          ],
        }),
      ),
      alwaysListed: opt(
        list('Tools that stay in the list, by the name that clients see.', str('Name of a tool.', { minLength: 1, maxLength: 256 }), {
          merge: 'set',
          maxItems: 256,
        }),
      ),
      description: opt(str('Description of find_tool; by default it names the backends.', { minLength: 1, maxLength: 4096 })),
      maxToolsToReturn: opt(int32('Maximum number of search results; 8 by default.', { minimum: 1, maximum: 50 })),
      hybridSearchSemanticRatio: opt(
        str('Weight of semantic search, 0 to 1; 0.5 by default.', { maxLength: 32, pattern: NUMBER_PATTERN, rules: upTo(1) }),
      ),
      semanticDistanceThreshold: opt(
        str('Maximum distance of a result, 0 to 2; 1.0 by default.', { maxLength: 32, pattern: NUMBER_PATTERN, rules: upTo(2) }),
      ),
    },
    {
      rules: [
        {
          rule: "!has(self.embeddingHeaders) || self.embeddingProvider == 'openai'",
          message: 'embeddingHeaders may only be set if embeddingProvider is openai',
          fieldPath: '.embeddingHeaders',
        },
        {
          rule: "self.embeddingProvider != 'openai' || (has(self.embeddingService) && has(self.embeddingModel))",
          message: 'embeddingService and embeddingModel must be set if embeddingProvider is openai',
        },
        {
          rule: 'has(self.embeddingService) || (!has(self.embeddingModel) && !has(self.hybridSearchSemanticRatio) && !has(self.semanticDistanceThreshold))',
          message: 'embeddingModel, hybridSearchSemanticRatio and semanticDistanceThreshold need embeddingService',
        },
      ],
    },
  )

export type Optimizer = Static<ReturnType<typeof optimizer>>
