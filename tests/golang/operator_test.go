package golang_test

import (
	"context"
	"fmt"
	"sync"
	"testing"
	"time"

	"github.com/go-logr/logr"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/client-go/tools/leaderelection"
	"k8s.io/client-go/tools/leaderelection/resourcelock"
	"k8s.io/client-go/tools/record"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller/controllerutil"
	"sigs.k8s.io/controller-runtime/pkg/log"
	"sigs.k8s.io/controller-runtime/pkg/metrics/server"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"
)

const finalizer = "golang.holdfast.dev/fleet"

// reconciler keeps as many ConfigMaps as a Fleet has members, and counts them in its status.
type reconciler struct {
	client.Client
	events record.EventRecorder

	mutex    sync.Mutex
	finished []string
}

func (r *reconciler) Reconcile(ctx context.Context, request reconcile.Request) (reconcile.Result, error) {
	found := &unstructured.Unstructured{}
	found.SetGroupVersionKind(fleetKind)
	if err := r.Get(ctx, request.NamespacedName, found); err != nil {
		return reconcile.Result{}, client.IgnoreNotFound(err)
	}
	if !found.GetDeletionTimestamp().IsZero() {
		r.mutex.Lock()
		r.finished = append(r.finished, found.GetName())
		r.mutex.Unlock()
		controllerutil.RemoveFinalizer(found, finalizer)
		return reconcile.Result{}, r.Update(ctx, found)
	}
	if controllerutil.AddFinalizer(found, finalizer) {
		return reconcile.Result{}, r.Update(ctx, found)
	}
	size, _, _ := unstructured.NestedInt64(found.Object, "spec", "size")
	for number := range size {
		member := configMap(fmt.Sprintf("%s-%d", found.GetName(), number), nil)
		member.Namespace = found.GetNamespace()
		_, err := controllerutil.CreateOrUpdate(ctx, r.Client, member, func() error {
			member.Data = map[string]string{"fleet": found.GetName()}
			return controllerutil.SetControllerReference(found, member, r.Scheme())
		})
		if err != nil {
			return reconcile.Result{}, err
		}
	}
	members := &corev1.ConfigMapList{}
	if err := r.List(ctx, members, client.InNamespace(found.GetNamespace()), client.MatchingFields{"fleet": found.GetName()}); err != nil {
		return reconcile.Result{}, err
	}
	before := found.DeepCopy()
	if err := unstructured.SetNestedField(found.Object, int64(len(members.Items)), "status", "size"); err != nil {
		return reconcile.Result{}, err
	}
	if err := r.Status().Patch(ctx, found, client.MergeFrom(before)); err != nil {
		return reconcile.Result{}, err
	}
	if int64(len(members.Items)) == size {
		r.events.Event(found, corev1.EventTypeNormal, "Complete", "all members are there")
	}
	return reconcile.Result{}, nil
}

func TestAnOperatorKeepsTheChildrenOfItsObjects(t *testing.T) {
	t.Parallel()
	log.SetLogger(logr.Discard())
	ns := namespace(t)
	manager, err := ctrl.NewManager(config, ctrl.Options{
		Cache:                         cache.Options{DefaultNamespaces: map[string]cache.Config{ns: {}}},
		Metrics:                       server.Options{BindAddress: "0"},
		LeaderElection:                true,
		LeaderElectionID:              "fleets",
		LeaderElectionNamespace:       ns,
		LeaderElectionReleaseOnCancel: true,
	})
	check(t, err)
	operator := &reconciler{Client: manager.GetClient(), events: manager.GetEventRecorderFor("fleets")}
	check(t, manager.GetFieldIndexer().IndexField(t.Context(), &corev1.ConfigMap{}, "fleet", func(obj client.Object) []string {
		if name, found := obj.(*corev1.ConfigMap).Data["fleet"]; found {
			return []string{name}
		}
		return nil
	}))
	kind := &unstructured.Unstructured{}
	kind.SetGroupVersionKind(fleetKind)
	check(t, ctrl.NewControllerManagedBy(manager).Named("fleets").For(kind).Owns(&corev1.ConfigMap{}).Complete(operator))
	ctx, stop := context.WithCancel(t.Context())
	ended := make(chan error, 1)
	go func() { ended <- manager.Start(ctx) }()

	fleetsHere, maps := untyped.Resource(fleets).Namespace(ns), typed.CoreV1().ConfigMaps(ns)
	made, err := fleetsHere.Create(t.Context(), fleet(ns, "a", 3), metav1.CreateOptions{})
	check(t, err)
	counted := func(wanted int64) func() (bool, error) {
		return func() (bool, error) {
			found, err := fleetsHere.Get(t.Context(), "a", metav1.GetOptions{})
			if err != nil {
				return false, err
			}
			size, _, _ := unstructured.NestedInt64(found.Object, "status", "size")
			return size == wanted, nil
		}
	}
	eventually(t, "three members are counted", counted(3))
	check(t, maps.Delete(t.Context(), "a-1", metav1.DeleteOptions{}))
	eventually(t, "a deleted member comes back", func() (bool, error) {
		_, err := maps.Get(t.Context(), "a-1", metav1.GetOptions{})
		return err == nil, client.IgnoreNotFound(err)
	})
	eventually(t, "an Event says so", func() (bool, error) {
		events, err := typed.CoreV1().Events(ns).List(t.Context(), metav1.ListOptions{
			FieldSelector: "involvedObject.uid=" + string(made.GetUID()) + ",reason=Complete",
		})
		return err == nil && len(events.Items) > 0, err
	})
	scaled, err := fleetsHere.Patch(t.Context(), "a", "application/merge-patch+json",
		[]byte(`{"spec": {"replicas": 5}}`), metav1.PatchOptions{}, "scale")
	check(t, err)
	expect(t, "kind", scaled.GetKind(), "Scale")
	eventually(t, "five members are counted", counted(5))

	propagation := metav1.DeletePropagationForeground
	check(t, fleetsHere.Delete(t.Context(), "a", metav1.DeleteOptions{PropagationPolicy: &propagation}))
	eventually(t, "the fleet and its members are gone", func() (bool, error) {
		_, err := fleetsHere.Get(t.Context(), "a", metav1.GetOptions{})
		if !apierrors.IsNotFound(err) {
			return false, err
		}
		left, err := maps.List(t.Context(), metav1.ListOptions{})
		members := 0
		for _, each := range left.Items {
			if each.Data["fleet"] == "a" {
				members++
			}
		}
		return err == nil && members == 0, err
	})
	operator.mutex.Lock()
	expect(t, "finalized", len(operator.finished) > 0, true)
	operator.mutex.Unlock()
	stop()
	check(t, <-ended)
	lease, err := typed.CoordinationV1().Leases(ns).Get(t.Context(), "fleets", metav1.GetOptions{})
	check(t, err)
	expect(t, "released", *lease.Spec.HolderIdentity, "")
}

func TestASecondCandidateLeadsWhenTheFirstReleasesTheLease(t *testing.T) {
	t.Parallel()
	ns := namespace(t)
	led := make(chan string, 10)
	stand := func(name string) (context.CancelFunc, chan struct{}) {
		ctx, stop := context.WithCancel(t.Context())
		lock, err := resourcelock.New(resourcelock.LeasesResourceLock, ns, "lock",
			typed.CoreV1(), typed.CoordinationV1(), resourcelock.ResourceLockConfig{Identity: name})
		check(t, err)
		ended := make(chan struct{})
		go func() {
			defer close(ended)
			leaderelection.RunOrDie(ctx, leaderelection.LeaderElectionConfig{
				Lock: lock, ReleaseOnCancel: true,
				LeaseDuration: 4 * time.Second, RenewDeadline: 3 * time.Second, RetryPeriod: 200 * time.Millisecond,
				Callbacks: leaderelection.LeaderCallbacks{
					OnStartedLeading: func(context.Context) { led <- name },
					OnStoppedLeading: func() {},
				},
			})
		}()
		return stop, ended
	}
	await := func(wanted string) {
		t.Helper()
		select {
		case name := <-led:
			expect(t, "leader", name, wanted)
		case <-time.After(patience):
			t.Fatalf("%s does not lead", wanted)
		}
	}
	stopFirst, firstEnded := stand("first")
	await("first")
	stopSecond, secondEnded := stand("second")
	stopFirst()
	<-firstEnded
	await("second")
	stopSecond()
	<-secondEnded
}

func TestTheClientOfControllerRuntimeReadsAndWrites(t *testing.T) {
	t.Parallel()
	ns := namespace(t)
	direct, err := client.New(config, client.Options{})
	check(t, err)
	made := configMap("a", map[string]string{"n": "0"})
	made.Namespace = ns
	check(t, direct.Create(t.Context(), made))
	before := made.DeepCopy()
	made.Data["n"] = "1"
	check(t, direct.Patch(t.Context(), made, client.MergeFromWithOptions(before, client.MergeFromWithOptimisticLock{})))
	made.Data["n"] = "2"
	err = direct.Patch(t.Context(), made, client.MergeFromWithOptions(before, client.MergeFromWithOptimisticLock{}))
	expect(t, "conflict", apierrors.IsConflict(err), true)
	found := &corev1.ConfigMapList{}
	check(t, direct.List(t.Context(), found, client.InNamespace(ns), client.MatchingFields{"metadata.name": "a"}))
	expect(t, "found", found.Items[0].Data["n"], "1")
	only := &metav1.PartialObjectMetadata{}
	only.SetGroupVersionKind(corev1.SchemeGroupVersion.WithKind("ConfigMap"))
	check(t, direct.Get(t.Context(), client.ObjectKey{Namespace: ns, Name: "a"}, only))
	check(t, direct.DeleteAllOf(t.Context(), &corev1.ConfigMap{}, client.InNamespace(ns)))
	err = direct.Get(t.Context(), client.ObjectKey{Namespace: ns, Name: "a"}, only)
	expect(t, "not found", apierrors.IsNotFound(err), true)
}
