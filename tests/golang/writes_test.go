package golang_test

import (
	"fmt"
	"testing"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	appsapply "k8s.io/client-go/applyconfigurations/apps/v1"
	coreapply "k8s.io/client-go/applyconfigurations/core/v1"
	metaapply "k8s.io/client-go/applyconfigurations/meta/v1"
	"k8s.io/client-go/util/retry"
)

func TestAnUpdateOfAnOldVersionIsAConflict(t *testing.T) {
	t.Parallel()
	maps := typed.CoreV1().ConfigMaps(namespace(t))
	first, err := maps.Create(t.Context(), configMap("a", map[string]string{"n": "0"}), metav1.CreateOptions{})
	check(t, err)
	newer := first.DeepCopy()
	newer.Data["n"] = "1"
	_, err = maps.Update(t.Context(), newer, metav1.UpdateOptions{})
	check(t, err)
	_, err = maps.Update(t.Context(), first, metav1.UpdateOptions{})
	expect(t, "conflict", apierrors.IsConflict(err), true)
	check(t, retry.RetryOnConflict(retry.DefaultRetry, func() error {
		found, err := maps.Get(t.Context(), "a", metav1.GetOptions{})
		if err != nil {
			return err
		}
		found.Data["n"] = "2"
		_, err = maps.Update(t.Context(), found, metav1.UpdateOptions{})
		return err
	}))
	_, err = maps.Create(t.Context(), configMap("a", nil), metav1.CreateOptions{})
	expect(t, "already exists", apierrors.IsAlreadyExists(err), true)
	_, err = maps.Create(t.Context(), configMap("A_", nil), metav1.CreateOptions{})
	expect(t, "invalid", apierrors.IsInvalid(err), true)
	_, err = maps.Get(t.Context(), "none", metav1.GetOptions{})
	expect(t, "not found", apierrors.IsNotFound(err), true)
}

func TestEveryTypeOfPatchChangesWhatItSays(t *testing.T) {
	t.Parallel()
	ns := namespace(t)
	deployments := typed.AppsV1().Deployments(ns)
	_, err := deployments.Create(t.Context(), deployment("web", 0, "web:1"), metav1.CreateOptions{})
	check(t, err)
	patched := func(kind types.PatchType, patch string) *appsv1.Deployment {
		t.Helper()
		found, err := deployments.Patch(t.Context(), "web", kind, []byte(patch), metav1.PatchOptions{})
		check(t, err)
		return found
	}
	found := patched(types.JSONPatchType, `[{"op": "test", "path": "/spec/replicas", "value": 0},
		{"op": "add", "path": "/metadata/labels", "value": {"a": "1"}}]`)
	expect(t, "label", found.Labels["a"], "1")
	found = patched(types.MergePatchType, `{"metadata": {"labels": {"a": null, "b": "2"}}}`)
	expect(t, "labels", fmt.Sprint(found.Labels), "map[b:2]")
	container := `{"spec": {"template": {"spec": {"containers": [{"name": "side", "image": "side:1"}]}}}}`
	found = patched(types.StrategicMergePatchType, container)
	expect(t, "containers", len(found.Spec.Template.Spec.Containers), 2)
	_, err = deployments.Patch(t.Context(), "web", types.JSONPatchType,
		[]byte(`[{"op": "test", "path": "/spec/replicas", "value": 9}]`), metav1.PatchOptions{})
	expect(t, "a failed test", apierrors.IsInvalid(err), true)
}

func TestServerSideApplyOwnsFields(t *testing.T) {
	t.Parallel()
	ns := namespace(t)
	deployments := typed.AppsV1().Deployments(ns)
	applied := func(manager, image string, force bool) error {
		wanted := appsapply.Deployment("web", ns).WithSpec(appsapply.DeploymentSpec().
			WithSelector(metaapply.LabelSelector().WithMatchLabels(map[string]string{"app": "web"})).
			WithReplicas(0).
			WithTemplate(coreapply.PodTemplateSpec().WithLabels(map[string]string{"app": "web"}).
				WithSpec(coreapply.PodSpec().WithContainers(coreapply.Container().WithName("main").WithImage(image)))))
		_, err := deployments.Apply(t.Context(), wanted, metav1.ApplyOptions{FieldManager: manager, Force: force})
		return err
	}
	check(t, applied("first", "web:1", false))
	check(t, applied("second", "web:1", false))
	err := applied("second", "web:2", false)
	expect(t, "conflict", apierrors.IsConflict(err), true)
	expect(t, "cause", apierrors.HasStatusCause(err, metav1.CauseTypeFieldManagerConflict), true)
	check(t, applied("second", "web:2", true))
	found, err := deployments.Get(t.Context(), "web", metav1.GetOptions{})
	check(t, err)
	expect(t, "image", found.Spec.Template.Spec.Containers[0].Image, "web:2")
	own, err := appsapply.ExtractDeployment(found, "second")
	check(t, err)
	expect(t, "own image", *own.Spec.Template.Spec.Containers[0].Image, "web:2")
}

func TestADryRunChangesNothing(t *testing.T) {
	t.Parallel()
	maps := typed.CoreV1().ConfigMaps(namespace(t))
	dry := []string{metav1.DryRunAll}
	_, err := maps.Create(t.Context(), configMap("a", nil), metav1.CreateOptions{DryRun: dry})
	check(t, err)
	_, err = maps.Get(t.Context(), "a", metav1.GetOptions{})
	expect(t, "not found", apierrors.IsNotFound(err), true)
	_, err = maps.Create(t.Context(), configMap("a", nil), metav1.CreateOptions{})
	check(t, err)
	check(t, maps.Delete(t.Context(), "a", metav1.DeleteOptions{DryRun: dry}))
	_, err = maps.Get(t.Context(), "a", metav1.GetOptions{})
	check(t, err)
}

func TestADeletionHasPreconditionsAndWaitsForFinalizers(t *testing.T) {
	t.Parallel()
	maps := typed.CoreV1().ConfigMaps(namespace(t))
	wanted := configMap("a", nil)
	wanted.Finalizers = []string{"golang.holdfast.dev/kept"}
	made, err := maps.Create(t.Context(), wanted, metav1.CreateOptions{})
	check(t, err)
	other := types.UID("00000000-0000-0000-0000-000000000000")
	err = maps.Delete(t.Context(), "a", *metav1.NewPreconditionDeleteOptions(string(other)))
	expect(t, "conflict", apierrors.IsConflict(err), true)
	check(t, maps.Delete(t.Context(), "a", *metav1.NewPreconditionDeleteOptions(string(made.UID))))
	found, err := maps.Get(t.Context(), "a", metav1.GetOptions{})
	check(t, err)
	expect(t, "is being deleted", found.DeletionTimestamp != nil, true)
	found.Finalizers = nil
	_, err = maps.Update(t.Context(), found, metav1.UpdateOptions{})
	check(t, err)
	_, err = maps.Get(t.Context(), "a", metav1.GetOptions{})
	expect(t, "not found", apierrors.IsNotFound(err), true)
}

func TestADeploymentIsRolledOutScaledAndEvicted(t *testing.T) {
	t.Parallel()
	ns := namespace(t)
	deployments, pods := typed.AppsV1().Deployments(ns), typed.CoreV1().Pods(ns)
	_, err := deployments.Create(t.Context(), deployment("web", 1, "web:1"), metav1.CreateOptions{})
	check(t, err)
	available := func(replicas int32) func() (bool, error) {
		return func() (bool, error) {
			found, err := deployments.Get(t.Context(), "web", metav1.GetOptions{})
			return err == nil && found.Status.AvailableReplicas == replicas && found.Status.Replicas == replicas, err
		}
	}
	eventually(t, "one pod is available", available(1))
	scale, err := deployments.GetScale(t.Context(), "web", metav1.GetOptions{})
	check(t, err)
	scale.Spec.Replicas = 2
	_, err = deployments.UpdateScale(t.Context(), "web", scale, metav1.UpdateOptions{})
	check(t, err)
	eventually(t, "two pods are available", available(2))
	found, err := pods.List(t.Context(), metav1.ListOptions{LabelSelector: "app=web", FieldSelector: "status.phase=Running"})
	check(t, err)
	expect(t, "pods", len(found.Items), 2)
	evicted := found.Items[0]
	check(t, pods.EvictV1(t.Context(), &policyv1.Eviction{ObjectMeta: metav1.ObjectMeta{Name: evicted.Name, Namespace: ns}}))
	eventually(t, "the evicted pod is replaced", func() (bool, error) {
		_, err := pods.Get(t.Context(), evicted.Name, metav1.GetOptions{})
		if !apierrors.IsNotFound(err) {
			return false, err
		}
		return available(2)()
	})
}

func deployment(name string, replicas int32, image string) *appsv1.Deployment {
	labels := map[string]string{"app": name}
	return &appsv1.Deployment{
		ObjectMeta: metav1.ObjectMeta{Name: name},
		Spec: appsv1.DeploymentSpec{
			Replicas: &replicas,
			Selector: &metav1.LabelSelector{MatchLabels: labels},
			Template: corev1.PodTemplateSpec{
				ObjectMeta: metav1.ObjectMeta{Labels: labels},
				Spec:       corev1.PodSpec{Containers: []corev1.Container{{Name: "main", Image: image}}},
			},
		},
	}
}
