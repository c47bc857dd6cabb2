/** A JSON schema of the document, 2020-12; `$ref` points into its components. */
export type DocumentSchema = {
  $ref?: string;
  type?: string | string[];
  title?: string;
  description?: string;
  enum?: unknown[];
  const?: unknown;
  default?: unknown;
  examples?: unknown[];
  required?: string[];
  properties?: Record<string, DocumentSchema>;
  additionalProperties?: boolean | DocumentSchema;
  items?: DocumentSchema;
  anyOf?: DocumentSchema[];
  allOf?: DocumentSchema[];
  [keyword: string]: unknown;
};

/** A header of a response, or a reference to one of the components. */
export type DocumentHeader = { $ref?: string; description?: string; schema?: DocumentSchema };

export type DocumentContent = Record<
  string,
  { schema: DocumentSchema; example?: unknown; examples?: Record<string, { value: unknown }> }
>;

export type DocumentOperation = {
  operationId: string;
  tags: string[];
  summary: string;
  description?: string;
  security: Record<string, string[]>[];
  /** Roles that may use it; absent: it needs no credential. */
  'x-roles'?: string[];
  parameters: {
    name: string;
    in: 'path' | 'query' | 'header';
    required: boolean;
    description?: string;
    schema: DocumentSchema;
  }[];
  requestBody?: { required: boolean; content: DocumentContent };
  responses: Record<
    string,
    { description: string; headers: Record<string, DocumentHeader>; content?: DocumentContent }
  >;
};

/** The parts of an OpenAPI 3.1 document that this service uses. */
export type OpenApiDocument = {
  openapi: string;
  info: {
    title: string;
    version: string;
    description: string;
    license: { name: string; identifier: string };
  };
  servers: { url: string }[];
  tags: { name: string; description: string }[];
  paths: Record<string, Record<string, DocumentOperation>>;
  components: {
    schemas: Record<string, DocumentSchema>;
    headers: Record<string, DocumentHeader>;
    securitySchemes: Record<string, Record<string, string>>;
  };
};
