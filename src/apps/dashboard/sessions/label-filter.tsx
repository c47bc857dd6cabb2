import { fieldOf } from '../shell/form-field.ts';
import { toggled, withLabel } from './filters.ts';

type LabelFilterProps = {
  /** `key=value`, each. */
  labels: readonly string[];
  onChange: (labels: readonly string[]) => void;
};

/** The labels that must match: a click removes one, the field adds one. */
export function LabelFilter({ labels, onChange }: LabelFilterProps) {
  return (
    <div class="chips" role="group" aria-label="Labels">
      {labels.map((label) => (
        <button
          key={label}
          type="button"
          class="chip"
          aria-pressed="true"
          title="Remove this filter"
          onClick={() => onChange(toggled(labels, label))}
        >
          {label} ×
        </button>
      ))}
      <form
        onSubmit={(event) => {
          event.preventDefault();
          const form = event.currentTarget;
          onChange(withLabel(labels, fieldOf(form, 'label')));
          form.reset();
        }}
      >
        <input name="label" class="label-field" aria-label="Label" placeholder="label=value" />
      </form>
    </div>
  );
}
